import { describe } from "bun:test";
import { openKeptClient } from "../support/kept-files.ts";
import { IS_LONG } from "../support/long.ts";
import { storeTest } from "./conformance/store-test.ts";
import { testAccountsOfStore, testChangesOfStore, testQueueOfStore, testReadsOfStore } from "./conformance/suite.ts";
import { testTexts } from "./conformance/texts.ts";

/** What meets the client itself: conflicts, counts of changed rows, texts, nulls and numbers, and many rows. */
describe("the store behind the client", () => {
  testQueueOfStore(openKeptClient);
  testTexts(storeTest(openKeptClient));
});

// The same statements as on a file.
describe.skipIf(!IS_LONG)("the rest of the store behind the client", () => {
  testReadsOfStore(openKeptClient);
  testAccountsOfStore(openKeptClient);
  testChangesOfStore(openKeptClient);
});
