import { describe } from "bun:test";
import { openFileStore } from "../support/store.ts";
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

describe("the store on a file", () => {
  testKeys(openFileStore);
  testGuards(openFileStore);
  testLeases(openFileStore);
  testLanes(openFileStore);
  testOutbox(openFileStore);
  testPaging(openFileStore);
  testTimeline(openFileStore);
  testChanges(openFileStore);
  testTexts(openFileStore);
  testAccounts(openFileStore);
  testLinks(openFileStore);
});
