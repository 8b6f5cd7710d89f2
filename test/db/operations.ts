import { expect } from "bun:test";
import { CREDENTIAL_REQUEST_STATUSES } from "../../src/core/credential.ts";
import { approve, cancel, retry } from "../../src/core/changes.ts";
import { NO_SEARCH, type Search, type ActionQuery } from "../../src/core/search.ts";
import { DAY_MS, DEDUPE_WINDOW_MS } from "../../src/core/limits.ts";
import { ActivityTally } from "../../src/core/activity.ts";
import { settleNotification } from "../../src/core/notification.ts";
import { type ActionStore, type HeldFilter, NO_FILTER, type Store } from "../../src/core/store.ts";
import {
  aBulkJob,
  ACCOUNT,
  anAccount,
  aCreation,
  aCredential,
  aCredentialRequest,
  aDecision,
  anApiKey,
  anArtifact,
  anAuditEntry,
  anAuditQuery,
  anInvitation,
  answered,
  aPause,
  aPerson,
  aQuery,
  aSession,
  aSignUp,
  aWelcomeLink,
  KEY,
  later,
  NOON,
  settled,
  writeOf,
} from "../support/factory.ts";
import { aGroup } from "../support/overview.ts";
import {
  attempted,
  claimDue,
  claimed,
  createdAction,
  decided,
  failedAction,
  LEASE,
  stored,
  settleMany,
} from "./conformance/steps.ts";
import { alertEvent } from "../../src/core/notification-events.ts";

/** Something that a service asks of its store. */
export type Operation = (store: Store) => Promise<unknown>;

export const LANE = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };

const REQUEST = { accountId: ACCOUNT, keyId: KEY };

const LINK = { actionId: "act_x", run: 1, decision: "approve" } as const;

const SPAN = { accountId: ACCOUNT, slotMinutes: 1, since: NOON, until: later(9) };

const NAMES = [{ kind: "host", name: "api.example.com" }] as const;

const KEYS = { dedupe: "d", idempotencyKey: "i", approve: true, callback: "https://hooks.example.com/" };

const A_PAUSE_END = { at: NOON, by: "system", audit: anAuditEntry() } as const;

const AUDIT_QUERY = anAuditQuery({ before: 9 });

const SEED = { id: "s", accountId: ACCOUNT, origin: null, use: null, sealedSeed: "sealed", rotatedAt: NOON };

const SOME = [{ id: "act_x", run: 1 }];

const DONE = { id: "act_x", status: "done", actionStatus: "pending" } as const;

const RESULTS = { status: null, before: null, limit: 9 };

const VALUE = { name: "customer", value: "7" };

const NAME = { name: "customer", value: null };

/** Every operation of a working day, and the names of the indexes by which its statements find their rows. */
export const OPERATIONS: readonly (readonly [name: string, run: Operation, indexes: string])[] = [
  ["create", on((actions) => actions.create(aCreation())), ""],
  ["create with metadata", on((actions) => actions.create(aCreation({ extras: { metadata: { a: "b" } } }))), ""],
  ["create with keys", on((actions) => actions.create(aCreation(KEYS))), "action_keys actions actions_held_by_key"],
  ["create that matches", on(createTwice), "action_keys actions actions_held_by_key"],
  ["create that its dedupe key matches", on(createBound), "action_keys actions actions_held_by_key"],
  ["find", on((actions) => actions.find(ACCOUNT, "act_x")), "actions"],
  ["find by id", on((actions) => actions.findById("act_x")), "actions"],
  ["holder of a key", on((actions) => actions.keyHolder(ACCOUNT, "dedupe", "d", NOON)), "action_keys actions"],
  [
    "claim",
    on(async (actions) => claimed(actions, await createdAction(actions))),
    "actions actions_pending pauses_in_force",
  ],
  ["create that is claimed", on((actions) => actions.create({ ...aCreation(), claim: LEASE })), "pauses_in_force"],
  ["settle", on(settleOne), "actions actions_pending pauses_in_force"],
  ["cancel", on(async (actions) => decided(actions, cancel, await createdAction(actions))), "actions"],
  ["retry with a key", on(retryOne), "action_keys actions pauses_in_force"],
  ["settle, and keep the response", on(settleMany), "actions actions_pending attempts pauses_in_force"],
  ["responses", on((actions) => actions.responses(ACCOUNT, "act_x")), "actions_by_account attempts"],
  ["timeline", on((actions) => actions.timeline(ACCOUNT, "act_x")), "timeline_once"],
  ["changes", on(changesSince), "actions actions_pending pauses_in_force timeline_once"],
  ["position", on((actions) => actions.position()), ""],
  ["activity", happened, "actions timeline_once"],
  ["counted activity", countActivity, "activity facts"],
  ["figures of a range", ({ activity }) => activity.read(SPAN), "activity"],
  ["latencies of a range", ({ activity }) => activity.latencies(SPAN, NAMES), "activity"],
  ["hours of hosts", ({ activity }) => activity.hostSlots(SPAN, ["api.example.com"]), "activity"],
  ["activity that is too old", pruneActivity, "activity activity_by_age facts"],
  ["first steps", ({ firstSteps }) => firstSteps.done(ACCOUNT, "person_x"), "first_steps"],
  ["newest actions", ({ firstSteps }) => firstSteps.newest(ACCOUNT), "actions_by_account"],
  ["waiting approvals", on((actions) => actions.waitingApprovals(ACCOUNT, later(DAY_MS))), "actions_by_status"],
  ["scheduled retries", on((actions) => actions.scheduledRetries(ACCOUNT, NOON)), "actions_pending"],
  ["known position", on((actions) => actions.knowsPosition(7)), ""],
  ["lanes", on((actions) => actions.lanes(null, 3)), "actions_pending"],
  ["what rules did", ({ rules }) => rules.ruled("acc_x", NOON, 9), "actions_ruled"],
  ["expired", ({ upkeep }) => upkeep.expired(NOON, null, 9), "actions_expiring"],
  ["reschedule", reschedule, "actions actions_held_by_key actions_pending outbox outbox_pending"],
  ["channels", ({ channels }) => channels.list(ACCOUNT), "channels_by_account"],
  ["a channel", ({ channels }) => channels.find(ACCOUNT, "x"), "channels"],
  ["settings of hosts", ({ hostSettings }) => hostSettings.list(ACCOUNT), "host_settings"],
  ["extend a lease", on(async (actions) => actions.extendLease(await createdAction(actions), NOON)), "actions"],
  ["orphans of a time", on((actions) => actions.orphans(NOON, 9, null)), "actions_active"],
  ["orphans", on((actions) => actions.orphans(null, 9, null)), "actions_active"],
  ["what became of a claim", on((actions) => actions.claimed([ACCOUNT], LEASE)), "actions_active"],
  [
    "prune",
    pruneKey,
    "action_keys action_keys_by_age actions actions_held_by_key key_days key_days_by_age rule_counts rule_counts_by_end",
  ],
  ["create with a daily limit", limitedOne, "key_days"],
  ["retry with a daily limit", on(limitedRetry), "actions key_days pauses_in_force"],
  ["use of keys", ({ accounts }) => accounts.keyUse(ACCOUNT, NOON), "actions_by_key api_keys_by_account key_days"],
  ["first due", on((actions) => actions.firstDueAt()), "actions_pending pauses_in_force"],
  ["count what waits", on((actions) => actions.waiting()), "actions_active actions_held actions_pending"],
  ["lanes of callbacks", ({ outbox }) => outbox.callbacks.lanes(null, 3), "outbox_pending"],
  ["what became of a claim of callbacks", ({ outbox }) => outbox.callbacks.claimed([ACCOUNT], LEASE), "outbox_active"],
  ["settle a callback", notifyOne, "actions actions_held_by_key outbox outbox_active outbox_pending pauses_in_force"],
  [
    "count a mail in",
    mailOne,
    "actions_held_by_key outbox outbox_active outbox_mailed_by outbox_mailed_to outbox_pending pauses_in_force people_email_key_unique",
  ],
  ["body of a callback", ({ outbox }) => outbox.payload("x"), "outbox"],
  ["orphaned callbacks of a time", ({ outbox }) => outbox.callbacks.orphans(NOON, 9, null), "outbox_active"],
  ["orphaned callbacks", ({ outbox }) => outbox.callbacks.orphans(null, 9, null), "outbox_active"],
  ["what an account was owed", ({ outbox }) => outbox.list(ACCOUNT, "x", 9), "outbox_by_account"],
  ["count what is owed", ({ outbox }) => outbox.waiting(), "outbox_active outbox_pending"],
  ["held", heldOf({}), "actions_held_by_key"],
  ["held at a host", heldOf({ host: "api.example.com" }), "actions_held_by_host"],
  ["held before a time", heldOf({ before: NOON }), "actions_held_by_key"],
  [
    "held at a host, of a key and before a time",
    heldOf({ keyId: KEY, host: "a.example", before: NOON }),
    "actions_held_by_host",
  ],
  ["count what is held", counting({}), "actions_by_status"],
  ["count what is held before a time", counting({ before: NOON }), "actions_by_status"],
  ["count what is held of a key", counting({ keyId: KEY }), "actions_held_by_key"],
  ["count what is held at a host", counting({ host: "a.example", before: NOON }), "actions_held_by_host"],
  ["count what is held at a host of a key", counting({ host: "a.example", keyId: KEY }), "actions_held_by_host"],
  ["hosts with something held", on((actions) => actions.heldHosts(ACCOUNT)), "actions_held_by_host"],
  ["held among some", on((actions) => actions.heldAmong(ACCOUNT, ["act_x"])), "actions"],
  ["held, in turns", heldInTurns, "action_keys actions actions_held_by_key"],
  ["held of a key", heldOf({ keyId: KEY }), "actions_held_by_key"],
  ["who has something held", on((actions) => actions.requesters(ACCOUNT)), "actions actions_held_by_key"],
  ["create what is held", on((actions) => actions.create(aCreation({ approve: true }))), "actions_held_by_key"],
  [
    "hosts that were approved",
    on((actions) => actions.approvedHosts(ACCOUNT, [{ keyId: KEY, hostname: "a" }])),
    "actions_approved",
  ],
  ["count by status", on((actions) => actions.count(aQuery({ statuses: ["failed"] }), 99)), "actions_by_status"],
  ["count what failed since", on((actions) => actions.count(failedSince(), 99)), "actions_by_status"],
  ["list as a count", on((actions) => actions.count(failedSince({ q: "refund" }), 99)), "actions_by_status"],
  ["list", listing({}), "actions_by_account"],
  ["list after a cursor", listing({ before: "act_x" }), "actions_by_account"],
  ["list by times", listing({ createdAfter: NOON, createdBefore: later(9) }), "actions_by_account"],
  ["list by host", listing({ host: "api.example.com" }), "actions_by_hostname"],
  ["list by host and times", listing({ host: "a.example", createdAfter: NOON }), "actions_by_hostname"],
  ["list by dedupe", listing({ dedupe: "d" }), "actions_by_dedupe"],
  ["list by status", listing({ statuses: ["failed"] }), "actions_by_status"],
  ["list by status and cursor", listing({ statuses: ["pending"], before: "act_x" }), "actions_by_status"],
  ["list by several statuses", listing({ statuses: ["pending", "active"] }), "actions_active actions_by_status"],
  ["list what is in flight", listing({ statuses: ["active"] }), "actions_active"],
  ["list of a key", listing({ createdBy: KEY }), "actions_by_key"],
  ["list of a key by time and id", listing({ createdBy: KEY, createdAfter: NOON, before: "act_x" }), "actions_by_key"],
  ["list of a key by status", listing({ createdBy: KEY, statuses: ["failed"] }), "actions_by_status"],
  ["list of a key with what is completed", listing({ createdBy: KEY, statuses: ["completed"] }), "actions_by_key"],
  ["list of a key by host", listing({ createdBy: KEY, host: "api.example.com" }), "actions_by_hostname"],
  ["list by method", listing({ method: "PUT" }), "actions_by_account"],
  ["list by free text", searching({ q: "refund", title: "x", reason: "y" }), "actions_by_account"],
  ["list by the start of an id", searching({ q: "act_01kjwa" }), "actions_by_account"],
  ["list by code and path", searching({ responseCodes: ["500", "4xx"], path: "/" }), "actions_by_account"],
  ["hosts and keys", on((actions) => actions.filterValues(ACCOUNT, 9)), "actions_by_hostname actions_by_key"],
  ["list by ids", searching({ ids: ["act_x", "act_y"] }), "actions_by_account"],
  ["list by metadata", searching({ metadata: [VALUE] }), "action_metadata_by_value"],
  ["list by a name of metadata", searching({ metadata: [NAME] }), "actions_by_account"],
  ["list by unknown outcome", on(searchUnknown), "actions_pending pauses_in_force actions_by_account timeline_once"],
  ["what may have been received", on((actions) => actions.withUnknown(["act_x"])), "timeline_once"],
  ["what was done too late", on((actions) => actions.withLateSuccess(["act_x"])), "actions"],
  ["key by hash", ({ accounts }) => accounts.keyByHash("x"), "api_keys_hash_unique"],
  ["keys of an account", ({ accounts }) => accounts.keys("acc_x", 9), "api_keys_by_account"],
  ["key of an account", ({ accounts }) => accounts.findKey("acc_x", "key_x"), "api_keys"],
  ["keys that one replaced", ({ accounts }) => accounts.replacedBy("key_x"), "api_keys"],
  ["keep links", ({ links }) => links.keep([{ ...LINK, hash: "x" }], NOON), ""],
  ["link", ({ links }) => links.find(LINK), "approval_links"],
  ["account", ({ accounts }) => accounts.find("acc_x"), "accounts"],
  ["person", ({ people }) => people.find("ann@example.com"), "members_by_person people_email_key_unique"],
  ["name and address of an account", ({ people }) => people.findLabel("acc_x"), "accounts members_by_account people"],
  ["session", ({ people }) => people.session("x", NOON), "members members_by_person people sessions"],
  [
    "what an account does",
    accountLives,
    "accounts api_keys callback_hosts grants_in_force pauses_in_force rejections_by_key",
  ],
  [
    "what a person does",
    personLives,
    "accounts members members_by_account members_by_person people sessions sessions_by_person welcome_links welcome_links_by_account",
  ],
  [
    "what a team does",
    teamLives,
    "actions_held_by_host api_keys api_keys_by_account grants_in_force identities_once invitations invitations_once members members_by_account members_by_person oauth_artifacts_by_account people people_email_key_unique sessions sessions_by_person welcome_links_by_account",
  ],
  ["grants that can be ended", ({ grants }) => grants.listOpen("acc_x", NOON, 9), "grants_in_force"],
  ["sessions of a person", ({ people }) => people.sessionsOf("x", NOON), "sessions_by_person"],
  ["members", ({ team }) => team.members("acc_x", 9), "members_by_account people"],
  ["member", ({ team }) => team.member("acc_x", "per_x"), "members people"],
  [
    "accounts of a person",
    ({ team }) => team.accountsOf("x", 9),
    "accounts members_by_account members_by_person people",
  ],
  ["invitations", ({ team }) => team.invitations("acc_x", NOON, 9), "invitations_once"],
  ["invitation", ({ team }) => team.invitation({ hash: "x" }, NOON), "invitations_hash_unique"],
  ["invitation of an address", ({ team }) => team.invitationsOf("x", NOON, 9), "invitations_by_address"],
  ["managers", ({ team }) => team.managers("acc_x", NOON), "api_keys api_keys_by_account members_by_account"],
  ["identified", ({ team }) => team.identified({ issuer: "i", subject: "s" }), "identities members_by_person people"],
  ["tell the end of a credential", tellEnd, "credentials credentials_by_name outbox_once"],
  ["prune alerts of credentials", ({ credentials }) => credentials.pruneAlerts(NOON), "outbox outbox_once"],
  ["prune invitations", ({ team }) => team.prune(NOON), "invitations invitations_by_end outbox outbox_once"],
  ["welcome link", ({ people }) => people.link("x", NOON), "members people welcome_links"],
  ["prune people", ({ people }) => people.prune(NOON), "sessions sessions_by_end welcome_links welcome_links_by_end"],
  ["signing seeds", ({ signing }) => signing.seeds("acc_x", "https://a.example", "calls"), "signing_seeds_by_origin"],
  [
    "origins that were used",
    ({ signing }) => signing.origins(ACCOUNT),
    "actions_by_hostname outbox_by_account signing_seeds_by_origin",
  ],
  ["rotate", ({ signing }) => signing.rotate(SEED), "signing_seeds_by_origin"],
  [
    "sealed texts",
    ({ sealed }) => sealed.find("x", null, 9),
    "accounts actions channels credentials oauth_artifacts signing_seeds_id_unique",
  ],
  [
    "what the authorization server does",
    authorizes,
    "api_keys members oauth_artifacts oauth_artifacts_by_account oauth_artifacts_by_end oauth_artifacts_by_grant",
  ],
  [
    "requests for credentials",
    asksForCredentials,
    "api_keys credential_requests credential_requests_by_account credential_requests_by_end credential_requests_by_key credential_requests_open credentials_by_name outbox outbox_once",
  ],
  ["held", ({ upkeep }) => upkeep.held(NOON, "", 9), "actions_held timeline_once"],
  ["reject, and count it", rejectOne, "actions actions_held_by_key rejections_by_key rejections_by_request"],
  [
    "what was rejected before",
    ({ rejections }) => rejections.earlier({ ...REQUEST, id: "act_x", run: 1 }, "d", NOON),
    "rejections_by_request timeline_once",
  ],
  [
    "count similar rejections",
    ({ rejections }) => rejections.similar({ ...REQUEST, digest: "d", similar: "s" }, NOON),
    "rejections_by_similar",
  ],
  ["prune rejections", ({ rejections }) => rejections.prune(NOON), "rejections_by_age"],
  [
    "prune by age",
    pruneOne,
    "action_metadata actions approval_links attempts action_keys outbox_once pauses_in_force timeline_once",
  ],
  ["pause", ({ pauses }) => pauses.pause(aPause(), anAuditEntry()), "pauses_by_subject pauses_in_force"],
  [
    "pause a key",
    ({ pauses }) => pauses.pause(aPause({ kind: "key", subject: KEY }), anAuditEntry()),
    "api_keys pauses_by_subject pauses_in_force",
  ],
  ["end a pause", ({ pauses }) => pauses.end(ACCOUNT, "x", A_PAUSE_END), "pauses"],
  ["pauses in force", ({ pauses }) => pauses.inForce(ACCOUNT), "pauses pauses_in_force"],
  ["all pauses in force", ({ pauses }) => pauses.inForce(null), "pauses_in_force"],
  ["pauses of an action", ({ pauses }) => pauses.ofAction(ACCOUNT, "act_x"), "actions pauses_by_subject"],
  [
    "what a key left",
    ({ pauses }) => pauses.unfinished(ACCOUNT, KEY, 9),
    "actions_active actions_held_by_key actions_pending",
  ],
  ["prune grants", ({ grants }) => grants.prune(NOON), "actions_active actions_by_status grants grants_by_end"],
  ["prune pauses", ({ pauses }) => pauses.prune(NOON), "pauses pauses_by_end"],
  ["audit log", ({ audit }) => audit.page(AUDIT_QUERY), "audit_by_account"],
  ["audit log by kind", ({ audit }) => audit.page({ ...AUDIT_QUERY, kinds: ["paused"] }), "audit_by_account"],
  [
    "audit log of a person",
    ({ audit }) => audit.page({ ...AUDIT_QUERY, actors: ["user:a@example.com", "email:a@example.com"] }),
    "audit_by_account",
  ],
  [
    "counts of the audit log",
    ({ audit }) => audit.count({ accountId: ACCOUNT, kinds: ["credential_used"], until: NOON, days: 7 }),
    "audit_by_account",
  ],
  ["prune the audit log", ({ audit }) => audit.prune(NOON), ""],
  ["add a bulk job", ({ bulk }) => bulk.add(aBulkJob(), SOME, anAuditEntry()), "bulk_jobs_by_account"],
  ["bulk job", ({ bulk }) => bulk.find(ACCOUNT, "x"), "bulk_jobs"],
  ["bulk jobs", ({ bulk }) => bulk.list(ACCOUNT, null, 9), "bulk_jobs_by_account"],
  ["bulk jobs that run", ({ bulk }) => bulk.running(9), "bulk_jobs_running"],
  ["results of a bulk job", ({ bulk }) => bulk.results("x", RESULTS), "bulk_results"],
  ["failed in a bulk job", ({ bulk }) => bulk.results("x", { ...RESULTS, status: "failed" }), "bulk_results_by_status"],
  ["next actions of a bulk job", ({ bulk }) => bulk.waiting("x", 9), "bulk_results_by_status"],
  ["settle a bulk job", ({ bulk }) => bulk.settle("x", [DONE]), "bulk_jobs bulk_results bulk_results_by_status"],
  ["end a bulk job", ({ bulk }) => bulk.end("x", { status: "finished", at: NOON, by: null }), "bulk_jobs"],
  ["prune bulk jobs", pruneJob, "bulk_jobs bulk_jobs_by_account bulk_jobs_by_end bulk_results"],
  ["fact", ({ facts }) => facts.read("x"), "facts"],
];

async function happened({ actions, activity }: Store): Promise<void> {
  await createdAction(actions);
  await activity.groups(0, { since: NOON, limit: 500 });
}

/** As the side bar counts it. */
function failedSince(search: Partial<Search> = {}): ActionQuery {
  return aQuery({ statuses: ["failed"], createdAfter: NOON, limit: 9, search: { ...NO_SEARCH, ...search } });
}

async function countActivity({ activity }: Store): Promise<void> {
  const tally = new ActivityTally(NOON);
  tally.add(aGroup());
  await activity.stored(tally.slotsFor([aGroup()]));
  await activity.put({ from: 0, to: 1, rows: tally.changed, steps: [] });
}

/** A page by ids, and one on which the keys take turns. */
function heldOf(filter: Partial<HeldFilter>): Operation {
  return async ({ actions }) => {
    for (const after of ["act_x", "2.act_x"]) await actions.held(ACCOUNT, after, 9, { ...NO_FILTER, ...filter });
  };
}

function counting(filter: Partial<HeldFilter>): Operation {
  return ({ actions }) => actions.heldTotal(ACCOUNT, { ...NO_FILTER, ...filter }, 9);
}

async function heldInTurns({ actions }: Store): Promise<void> {
  for (const keyId of ["key_a", "key_b"])
    await actions.create(aCreation({ ...KEYS, dedupe: keyId, idempotencyKey: keyId, keyId }));
  await actions.held(ACCOUNT, null, 9);
}

async function reschedule({ actions, outbox }: Store): Promise<void> {
  const late = later(DAY_MS);
  await actions.create(aCreation({ createdAt: late, dueAt: late }));
  await actions.create(aCreation({ approve: true, callback: "https://api.example.com/", createdAt: late }));
  expect(await actions.reschedule({ now: NOON, byMs: 5 }, 9)).toBe(1);
  expect(await outbox.callbacks.reschedule({ now: NOON, byMs: 5 }, 9)).toBe(1);
}

async function pruneKey({ actions, upkeep }: Store): Promise<void> {
  await actions.create(aCreation(KEYS));
  expect(await upkeep.pruneKeys(later(2 * DEDUPE_WINDOW_MS))).toBe(false);
}

async function pruneActivity(store: Store): Promise<void> {
  await countActivity(store);
  await store.activity.prune(1, later(9 * DAY_MS));
}

async function pruneJob({ bulk }: Store): Promise<void> {
  const job = aBulkJob();
  await bulk.add(job, SOME, anAuditEntry());
  await bulk.end(job.id, { status: "finished", at: NOON, by: null });
  expect([await bulk.prune(NOON), await bulk.prune(NOON)]).toEqual([true, false]);
}

/** Gets a key with a hold, replaces and revokes it. */
async function accountLives({ accounts, callbackHosts }: Store): Promise<void> {
  const first = anAccount();
  await accounts.create(first, [anApiKey({ accountId: first.id })]);
  const [key, next] = [anApiKey({ accountId: first.id, hold: "all" }), anApiKey({ accountId: first.id })];
  await accounts.addKey(key, anAuditEntry());
  await accounts.allow(first.id, A_PAUSE_END);
  await accounts.addKey({ ...next, replaces: key.id });
  await accounts.keyUsed(next.id, NOON);
  const pause = { pause: aPause({ accountId: first.id, kind: "key", subject: key.id }), audit: anAuditEntry() };
  await accounts.revokeKey(first.id, key.id, NOON, { audit: anAuditEntry(), pause });
  await callbackHosts.put({ accountId: first.id, host: "a.example", createdAt: NOON }, anAuditEntry());
  await callbackHosts.remove(first.id, "a.example", anAuditEntry());
}

/** Signs up, logs in and out, renews a password, and is the first person of an account. */
async function tellEnd({ credentials }: Store): Promise<void> {
  const message = { kind: "mail", event: alertEvent({ stage: "expired", expiresAt: NOON }, 0), target: "a" } as const;
  const end = { accountId: ACCOUNT, id: "crd_x", expiresAt: NOON };
  const row = { id: "row", host: "a", message };
  await credentials.add(aCredential({ id: end.id, expiresAt: NOON }), anAuditEntry());
  if (!(await credentials.addAlert(end, [row], NOON))) throw new Error("Nothing was told.");
}

async function asksForCredentials({ credentialRequests }: Store): Promise<void> {
  const [one, other] = [aCredentialRequest(), aCredentialRequest({ host: "b.example" })];
  for (const each of [one, other]) await credentialRequests.ask(each, NOON, [], anAuditEntry());
  await credentialRequests.find(ACCOUNT, one.id);
  for (const keyId of [null, KEY]) {
    for (const status of [null, ...CREDENTIAL_REQUEST_STATUSES]) {
      await credentialRequests.list(ACCOUNT, { keyId, status, now: NOON, before: null, limit: 9 });
    }
  }
  await credentialRequests.pending(ACCOUNT, NOON);
  await credentialRequests.grant(one.id, aCredential(), anAuditEntry(), anAuditEntry());
  await credentialRequests.decline({ ...other, at: NOON, by: "system", reason: null }, anAuditEntry());
  await credentialRequests.prune(NOON);
}

async function authorizes({ accounts, oauth }: Store): Promise<void> {
  const [key, theirs] = [anApiKey(), anApiKey({ createdById: "per_x" })];
  for (const one of [key, theirs]) await accounts.addKey(one);
  await oauth.put(anArtifact({ keyId: theirs.id }));
  const grant = anArtifact({ keyId: key.id });
  const token = anArtifact({ kind: "AccessToken", grantId: grant.id, keyId: key.id });
  for (const one of [grant, token, anArtifact({ kind: "Interaction" }), anArtifact({ kind: "Client" })]) {
    await oauth.put(one);
  }
  await oauth.find(token.id);
  await oauth.keyByToken(token.id, NOON);
  await oauth.consume(token.id, NOON);
  await oauth.remove(token.id);
  await oauth.connections(ACCOUNT, NOON);
  await oauth.clients(ACCOUNT);
  await oauth.endGrant(grant.id, { at: NOON, by: "system", audit: anAuditEntry() });
  await oauth.prune(NOON);
}

async function personLives({ people, accounts }: Store): Promise<void> {
  const { account, key, person, session } = aSignUp();
  const { id: personId, passwordHash } = person;
  await people.signUp({ account, key, person, session });
  const begin = () => aSession({ personId, accountId: account.id });
  const next = begin();
  await people.addSession(next, passwordHash);
  await people.renewSessionSecret(next.hash, "secret", passwordHash);
  await people.sessionSeen(next.hash, NOON);
  await people.switchAccount(next.hash, account.id, NOON);
  await people.endSession(session.hash, anAuditEntry());
  await people.endSessions(personId, { except: next.hash }, anAuditEntry());
  await people.changePassword(begin(), passwordHash, "next hash", anAuditEntry());
  const reset = aWelcomeLink({ accountId: account.id, personId });
  await people.offer(reset);
  expect(await people.renewPassword(reset.hash, "last hash", begin())).toBe(true);
  const invited = anAccount();
  await accounts.create(invited, []);
  const link = aWelcomeLink({ accountId: invited.id });
  await people.offer(link);
  const first = aPerson({ accountId: invited.id });
  expect(await people.welcome(link.hash, first.person, first.session)).toBe("taken");
  await people.renameAccount(invited.id, "Acme", anAuditEntry());
}

/** Invites, joins, logs in by an identity, changes roles and leaves. */
async function teamLives({ people, team }: Store): Promise<void> {
  const all = aSignUp();
  const accountId = all.account.id;
  await people.signUp(all);
  const [withdrawn, invitation] = [anInvitation({ accountId }), anInvitation({ accountId })];
  for (const one of [withdrawn, invitation]) await team.invite(one, { id: one.id, host: "a" }, anAuditEntry());
  await team.withdraw(accountId, withdrawn.id, anAuditEntry());
  const { person, session } = aPerson({ accountId });
  const identity = { issuer: "i", subject: "s" };
  const joining = { invitation, person, isNew: true, session, identity, at: NOON, audit: [] };
  expect(await team.join(joining)).toBe(true);
  const next = aSession({ personId: person.id, accountId });
  expect(await team.signIn(next, identity, { audit: [], dropsPassword: true })).toBe(true);
  expect(await team.changeRole(accountId, person.id, "owner", anAuditEntry())).toBe("done");
  expect(await team.remove(accountId, person.id, anAuditEntry())).toBe("done");
}

async function limitedOne({ actions }: Store): Promise<void> {
  await actions.create({ ...aCreation({ dueAt: NOON }), budget: { limit: 5, day: 20_516 } });
}

async function limitedRetry(actions: ActionStore): Promise<void> {
  const budget = { keyId: KEY, limit: 5, day: 20_516 };
  const write = writeOf(retry(await failedAction(actions), aDecision()));
  await actions.apply({ ...write, budget });
  await actions.hasBudgetLeft(budget);
}

function on(run: (actions: ActionStore) => Promise<unknown>): Operation {
  return (store) => run(store.actions);
}

function searching(search: Partial<Search>): Operation {
  return listing({ search: { ...NO_SEARCH, ...search } });
}

async function searchUnknown(actions: ActionStore): Promise<void> {
  await attempted(actions, await createdAction(actions), { kind: "unknown", fault: "closed" });
  await actions.list(aQuery({ search: { ...NO_SEARCH, outcome: "unknown" } }));
}

function listing(filter: Partial<ActionQuery>): Operation {
  return ({ actions }) => actions.list(aQuery(filter));
}

async function createTwice(actions: ActionStore): Promise<void> {
  await actions.create(aCreation(KEYS));
  await actions.create(aCreation(KEYS));
}

async function createBound(actions: ActionStore): Promise<void> {
  await actions.create(aCreation({ dedupe: "d" }));
  await actions.create(aCreation(KEYS));
}

/** Of a change that was overtaken, in a run whose beginning lies before the page, and of one that was not. */
async function changesSince(actions: ActionStore): Promise<void> {
  const action = await createdAction(actions);
  const position = await actions.position();
  await attempted(actions, action, answered(500));
  await actions.changes(ACCOUNT, position);
}

async function settleOne(actions: ActionStore): Promise<void> {
  await actions.apply(settled(await claimed(actions, await createdAction(actions)), answered(500)));
}

async function pruneOne({ actions, upkeep }: Store): Promise<void> {
  await failedAction(actions, { dedupe: "d", idempotencyKey: "i" });
  await upkeep.prune({ finishedUntil: later(9), now: later(2 * DEDUPE_WINDOW_MS) }, "");
}

/** Rejected, asked for again by a create and by a retry, approved. */
async function rejectOne({ actions, rejections }: Store): Promise<void> {
  const rejection = { kind: "asked", digest: "d", similar: "s", by: "key:ci", reason: "why" } as const;
  const { action, ...rest } = aCreation({ approve: true });
  await actions.create({ action, ...rest, rejection });
  const rejected = { ...rejection, kind: "rejected" } as const;
  await actions.apply({ ...writeOf(cancel(action, aDecision())), rejection: rejected });
  await actions.apply({ ...writeOf(retry(await stored(actions, action), aDecision())), rejection });
  const held = await stored(actions, action);
  await actions.apply({ ...writeOf(approve(held, aDecision())), rejection: { ...rejection, kind: "approved" } });
  await rejections.count({ ...REQUEST, digest: "d" }, NOON);
}

async function retryOne(actions: ActionStore): Promise<void> {
  const failed = await failedAction(actions, { dedupe: "d" });
  await actions.apply(writeOf(retry(await stored(actions, failed), aDecision())));
}

async function notifyOne({ actions, outbox }: Store): Promise<void> {
  await actions.create(aCreation({ approve: true, callback: "https://api.example.com/" }));
  const [before] = await claimDue(outbox.callbacks, LANE);
  if (before === undefined) throw new Error("There was nothing to be claimed.");
  await outbox.settle(settleNotification(before, { delivery: { kind: "delivered" }, now: NOON, chance: 0.5 }), NOON);
}

async function mailOne({ actions, outbox }: Store): Promise<void> {
  await actions.create(aCreation({ approve: true, notifyEmail: "boss@example.com" }));
  const lane = { accountId: ACCOUNT, host: "boss@example.com", keyId: KEY };
  const [mail] = await claimDue(outbox.mails, lane);
  if (mail !== undefined) await outbox.permitMail(mail, NOON);
}
