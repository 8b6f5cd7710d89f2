import type { OpenTestStore } from "../../support/store.ts";
import { testAccounts } from "./accounts.ts";
import { testAttempts } from "./attempts.ts";
import { testAudit } from "./audit.ts";
import { testBulk } from "./bulk.ts";
import { testCallbackHosts } from "./callback-hosts.ts";
import { testChanges } from "./changes.ts";
import { testChannels } from "./channels.ts";
import { testCredentialRequests } from "./credential-requests.ts";
import { testCredentials } from "./credentials.ts";
import { testExtras } from "./extras.ts";
import { testGuards } from "./guards.ts";
import { testHeld } from "./held.ts";
import { testHistory } from "./history.ts";
import { testHostSettings } from "./host-settings.ts";
import { testKeyDays } from "./key-days.ts";
import { testKeys } from "./keys.ts";
import { testLanes } from "./lanes.ts";
import { testLeases } from "./leases.ts";
import { testLinks } from "./links.ts";
import { testOAuth } from "./oauth.ts";
import { testOutbox } from "./outbox.ts";
import { testPaging } from "./paging.ts";
import { testPauses } from "./pauses.ts";
import { testRuleCounts } from "./rule-counts.ts";
import { testRules } from "./rules.ts";
import { testPeople } from "./people.ts";
import { testRejections } from "./rejections.ts";
import { testSchedule } from "./schedule.ts";
import { testSealed } from "./sealed.ts";
import { testSearch } from "./search.ts";
import { testSigning } from "./signing.ts";
import { testTeam } from "./team.ts";
import { testTexts } from "./texts.ts";
import { testTimeline } from "./timeline.ts";
import { testUpkeep } from "./upkeep.ts";
import { testWaiting } from "./waiting.ts";
import { testWelcomeLinks } from "./welcome-links.ts";

/** Every rule that a store keeps, whatever database is below it. */
export function testStore(open: OpenTestStore): void {
  testQueueOfStore(open);
  testReadsOfStore(open);
  testAccountsOfStore(open);
  testChangesOfStore(open);
}

/** What the queue, the outbox and the caps of keys do. */
export function testQueueOfStore(open: OpenTestStore): void {
  testKeys(open);
  testKeyDays(open);
  testGuards(open);
  testLeases(open);
  testLanes(open);
  testOutbox(open);
  testWaiting(open);
  testSchedule(open);
  testAttempts(open);
}

/** Lists, searches, timelines, and that texts and members come back as they were. */
export function testReadsOfStore(open: OpenTestStore): void {
  testPaging(open);
  testSearch(open);
  testTimeline(open);
  testHeld(open);
  testHistory(open);
  testTexts(open);
  testExtras(open);
}

/** People, keys, secrets and settings of accounts. */
export function testAccountsOfStore(open: OpenTestStore): void {
  testAccounts(open);
  testLinks(open);
  testPeople(open);
  testTeam(open);
  testWelcomeLinks(open);
  testSigning(open);
  testCallbackHosts(open);
  testHostSettings(open);
  testRules(open);
  testRuleCounts(open);
  testChannels(open);
  testCredentials(open);
  testCredentialRequests(open);
  testOAuth(open);
  testSealed(open);
}

/** Changes of actions, pauses, rejections, the audit log, bulk jobs and upkeep. */
export function testChangesOfStore(open: OpenTestStore): void {
  testChanges(open);
  testPauses(open);
  testRejections(open);
  testAudit(open);
  testBulk(open);
  testUpkeep(open);
}
