import { afterAll, describe, test } from "bun:test";
import { findSqld, startSqld } from "../support/sqld.ts";
import { openServerStore } from "../support/store.ts";
import { testAccounts } from "./conformance/accounts.ts";
import { testChanges } from "./conformance/changes.ts";
import { testGuards } from "./conformance/guards.ts";
import { testHeld } from "./conformance/held.ts";
import { testHistory } from "./conformance/history.ts";
import { testKeyDays } from "./conformance/key-days.ts";
import { testKeys } from "./conformance/keys.ts";
import { testLanes } from "./conformance/lanes.ts";
import { testLeases } from "./conformance/leases.ts";
import { testLinks } from "./conformance/links.ts";
import { testOutbox } from "./conformance/outbox.ts";
import { testPaging } from "./conformance/paging.ts";
import { testPeople } from "./conformance/people.ts";
import { testSchedule } from "./conformance/schedule.ts";
import { testSearch } from "./conformance/search.ts";
import { testSealed } from "./conformance/sealed.ts";
import { testSigning } from "./conformance/signing.ts";
import { testAttempts } from "./conformance/attempts.ts";
import { testExtras } from "./conformance/extras.ts";
import { testTeam } from "./conformance/team.ts";
import { testTexts } from "./conformance/texts.ts";
import { testTimeline } from "./conformance/timeline.ts";
import { testUpkeep } from "./conformance/upkeep.ts";
import { testWelcomeLinks } from "./conformance/welcome-links.ts";

const program = process.env["LONG_TESTS"] === "1" ? await findSqld() : null;
const sqld = program === null ? null : await startSqld(program);
afterAll(() => sqld?.[Symbol.asyncDispose]());
const open = () => openServerStore(sqld?.url ?? "");

// Each call is a request to another process: a minute or two in all.
if (sqld === null) test.skip("the store on a server (npm run test:long, where sqld can be installed)", () => {});
else describe("the store on a server", suite);

function suite(): void {
  testKeys(open);
  testKeyDays(open);
  testGuards(open);
  testLeases(open);
  testLanes(open);
  testOutbox(open);
  testPaging(open);
  testSearch(open);
  testTimeline(open);
  testChanges(open);
  testTexts(open);
  testExtras(open);
  testAttempts(open);
  testAccounts(open);
  testLinks(open);
  testHeld(open);
  testHistory(open);
  testPeople(open);
  testTeam(open);
  testWelcomeLinks(open);
  testSigning(open);
  testSealed(open);
  testUpkeep(open);
  testSchedule(open);
}
