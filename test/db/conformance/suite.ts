import type { OpenTestStore } from "../../support/store.ts";
import { testAccounts } from "./accounts.ts";
import { testAudit } from "./audit.ts";
import { testBulk } from "./bulk.ts";
import { testSettings } from "./settings.ts";
import { testChanges } from "./changes.ts";
import { testCredentials } from "./credentials.ts";
import { testGuards } from "./guards.ts";
import { testHeld } from "./held.ts";
import { testHistory } from "./history.ts";
import { testKeys } from "./keys.ts";
import { testClaims } from "./claims.ts";
import { testOAuth } from "./oauth.ts";
import { testOutbox } from "./outbox.ts";
import { testLists } from "./lists.ts";
import { testPauses } from "./pauses.ts";
import { testRules } from "./rules.ts";
import { testPeople } from "./people.ts";
import { testRejections } from "./rejections.ts";
import { testWaiting } from "./waiting.ts";
import { testSecrets } from "./secrets.ts";
import { storeTest } from "./store-test.ts";
import { testTeam } from "./team.ts";
import { testTexts } from "./texts.ts";
import { testTimeline } from "./timeline.ts";
import { testUpkeep } from "./upkeep.ts";

/** Every rule that a store keeps, whatever database is below it. */
export function testStore(open: OpenTestStore): void {
  testQueueOfStore(open);
  testReadsOfStore(open);
  testAccountsOfStore(open);
  testChangesOfStore(open);
}

/** What the queue, the outbox and the caps of keys do. */
export function testQueueOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testKeys(test);
  testGuards(test);
  testClaims(test);
  testOutbox(test);
  testWaiting(test);
}

/** Lists, searches, timelines, and that texts and members come back as they were. */
export function testReadsOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testLists(test);
  testTimeline(test);
  testHeld(test);
  testHistory(test);
  testTexts(test);
}

/** People, keys, secrets and settings of accounts. */
export function testAccountsOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testAccounts(test);
  testPeople(test);
  testTeam(test);
  testSecrets(test);
  testSettings(test);
  testRules(test);
  testCredentials(test);
  testOAuth(test);
}

/** Changes of actions, pauses, rejections, the audit log, bulk jobs and upkeep. */
export function testChangesOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testChanges(test);
  testPauses(test);
  testRejections(test);
  testAudit(test);
  testBulk(test);
  testUpkeep(test);
}
