import { describe } from "bun:test";
import { openClientStore } from "../support/store.ts";
import { testAccounts } from "./conformance/accounts.ts";
import { testChanges } from "./conformance/changes.ts";
import { testGuards } from "./conformance/guards.ts";
import { testKeys } from "./conformance/keys.ts";
import { testLanes } from "./conformance/lanes.ts";
import { testLeases } from "./conformance/leases.ts";
import { testLinks } from "./conformance/links.ts";
import { testOutbox } from "./conformance/outbox.ts";
import { testPaging } from "./conformance/paging.ts";
import { testTexts } from "./conformance/texts.ts";
import { testTimeline } from "./conformance/timeline.ts";

describe("the store behind the client", () => {
  testKeys(openClientStore);
  testGuards(openClientStore);
  testLeases(openClientStore);
  testLanes(openClientStore);
  testOutbox(openClientStore);
  testPaging(openClientStore);
  testTimeline(openClientStore);
  testChanges(openClientStore);
  testTexts(openClientStore);
  testAccounts(openClientStore);
  testLinks(openClientStore);
});
