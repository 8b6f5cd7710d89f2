import { describe } from "bun:test";
import { IS_LONG } from "../support/long.ts";
import { openClientStore } from "../support/store.ts";
import { testAccounts } from "./conformance/accounts.ts";
import { testAudit } from "./conformance/audit.ts";
import { testChanges } from "./conformance/changes.ts";
import { testGuards } from "./conformance/guards.ts";
import { testKeyDays } from "./conformance/key-days.ts";
import { testKeys } from "./conformance/keys.ts";
import { testLanes } from "./conformance/lanes.ts";
import { testLeases } from "./conformance/leases.ts";
import { testHeld } from "./conformance/held.ts";
import { testHistory } from "./conformance/history.ts";
import { testLinks } from "./conformance/links.ts";
import { testOutbox } from "./conformance/outbox.ts";
import { testPaging } from "./conformance/paging.ts";
import { testPauses } from "./conformance/pauses.ts";
import { testPeople } from "./conformance/people.ts";
import { testRejections } from "./conformance/rejections.ts";
import { testSchedule } from "./conformance/schedule.ts";
import { testSearch } from "./conformance/search.ts";
import { testSealed } from "./conformance/sealed.ts";
import { testCallbackHosts } from "./conformance/callback-hosts.ts";
import { testHostSettings } from "./conformance/host-settings.ts";
import { testWaiting } from "./conformance/waiting.ts";
import { testSigning } from "./conformance/signing.ts";
import { testExtras } from "./conformance/extras.ts";
import { testTeam } from "./conformance/team.ts";
import { testTexts } from "./conformance/texts.ts";
import { testTimeline } from "./conformance/timeline.ts";
import { testUpkeep } from "./conformance/upkeep.ts";
import { testWelcomeLinks } from "./conformance/welcome-links.ts";

/** What meets the client itself: conflicts, counts of changed rows, texts, nulls and numbers, and many rows. */
describe("the store behind the client", () => {
  testKeys(openClientStore);
  testKeyDays(openClientStore);
  testGuards(openClientStore);
  testLeases(openClientStore);
  testOutbox(openClientStore);
  testPaging(openClientStore);
  testSearch(openClientStore);
  testTimeline(openClientStore);
  testTexts(openClientStore);
  testExtras(openClientStore);
  testLinks(openClientStore);
  testPeople(openClientStore);
  testTeam(openClientStore);
  testSealed(openClientStore);
  testUpkeep(openClientStore);
});

// The same statements as on a file.
describe.skipIf(!IS_LONG)("the rest of the store behind the client", () => {
  testLanes(openClientStore);
  testChanges(openClientStore);
  testAccounts(openClientStore);
  testHeld(openClientStore);
  testHistory(openClientStore);
  testWelcomeLinks(openClientStore);
  testSigning(openClientStore);
  testCallbackHosts(openClientStore);
  testHostSettings(openClientStore);
  testWaiting(openClientStore);
  testPauses(openClientStore);
  testRejections(openClientStore);
  testAudit(openClientStore);
  testSchedule(openClientStore);
});
