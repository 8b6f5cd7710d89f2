import type { OpenTestStore } from "../../support/store.ts";
import { testAccounts } from "./accounts.ts";
import { testAudit } from "./audit.ts";
import { testBulk } from "./bulk.ts";
import { testCallbackHosts, testHostSettings, testChannels } from "./settings.ts";
import { testChanges } from "./changes.ts";
import { testCredentials, testCredentialRequests } from "./credentials.ts";
import { testGuards } from "./guards.ts";
import { testHeld } from "./held.ts";
import { testHistory } from "./history.ts";
import { testKeys, testKeyDays } from "./keys.ts";
import { testLanes, testLeases } from "./claims.ts";
import { testOAuth } from "./oauth.ts";
import { testOutbox, testLinks } from "./outbox.ts";
import { testPaging, testSearch } from "./lists.ts";
import { testPauses } from "./pauses.ts";
import { testRules, testRuleCounts } from "./rules.ts";
import { testPeople, testWelcomeLinks } from "./people.ts";
import { testRejections } from "./rejections.ts";
import { testSchedule, testWaiting } from "./waiting.ts";
import { testSigning, testSealed } from "./secrets.ts";
import { storeTest } from "./store-test.ts";
import { testTeam } from "./team.ts";
import { testTexts, testExtras } from "./texts.ts";
import { testTimeline, testAttempts } from "./timeline.ts";
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
  testKeyDays(test);
  testGuards(test);
  testLeases(test);
  testLanes(test);
  testOutbox(test);
  testWaiting(test);
  testSchedule(test);
  testAttempts(test);
}

/** Lists, searches, timelines, and that texts and members come back as they were. */
export function testReadsOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testPaging(test);
  testSearch(test);
  testTimeline(test);
  testHeld(test);
  testHistory(test);
  testTexts(test);
  testExtras(test);
}

/** People, keys, secrets and settings of accounts. */
export function testAccountsOfStore(open: OpenTestStore): void {
  const test = storeTest(open);
  testAccounts(test);
  testLinks(test);
  testPeople(test);
  testTeam(test);
  testWelcomeLinks(test);
  testSigning(test);
  testCallbackHosts(test);
  testHostSettings(test);
  testRules(test);
  testRuleCounts(test);
  testChannels(test);
  testCredentials(test);
  testCredentialRequests(test);
  testOAuth(test);
  testSealed(test);
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
