import type { RuleCount, RuleRow } from "../../src/core/account-rules.ts";
import type { Grant } from "../../src/core/grant.ts";
import type { CredentialRequest, SealedCredential } from "../../src/core/credential.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { createEnqueue } from "../../src/receipts/enqueue.ts";
import { type Action, type ActionRequest, firstState, type Result, NO_EXTRAS } from "../../src/core/action.ts";
import type { Channel } from "../../src/core/channel.ts";
import type { AuditEntry, AuditFilter } from "../../src/core/audit.ts";
import type { Change } from "../../src/core/changes.ts";
import type { Answered, Outcome } from "../../src/core/outcome.ts";
import type { MemberRole } from "../../src/core/roles.ts";
import type { Joining, StoredInvitation } from "../../src/core/team-store.ts";
import type { Pause } from "../../src/core/pause.ts";
import { type AttemptEnd, settle } from "../../src/core/settle.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { PersonRow, SessionRow, SignUp, WelcomeLink, Account, ApiKey } from "../../src/core/account-store.ts";
import type { BulkJob } from "../../src/core/bulk-job.ts";
import type { OAuthArtifact } from "../../src/core/oauth-store.ts";
import { CREDENTIAL_REQUEST_MS } from "../../src/core/limits.ts";
import { NO_SEARCH, type ActionQuery } from "../../src/core/search.ts";
import type { ChangeWrite, Creation, Store } from "../../src/core/store.ts";

/** Noon of a day without meaning: tests count their times from here. */
export const NOON = new Date("2026-03-04T12:00:00.000Z");

/** A time so many milliseconds after noon; before it when negative. */
export function later(ms: number): Date {
  return new Date(NOON.getTime() + ms);
}

export const ACCOUNT = "acc_one";

export const OTHER_ACCOUNT = "acc_two";

/** The key that actions are created by. */
export const KEY = "key_one";

const enqueue = createEnqueue(
  systemIds,
  (actionId) => `/r/${actionId}`,
  () => [],
);

/** What a caller asks for. Host and hostname follow from the URL unless they are given. */
export function aRequest(overrides: Partial<ActionRequest> = {}): ActionRequest {
  const url = overrides.url ?? "https://api.example.com/orders";
  const { hostname, host } = new URL(url);
  return {
    url,
    hostname,
    host,
    method: "POST",
    body: '{"order":7}',
    headers: null,
    dedupe: null,
    idempotencyKey: null,
    retries: 3,
    onUnknown: "retry",
    approve: false,
    callback: null,
    notifyEmail: null,
    title: null,
    expiresAt: null,
    extras: NO_EXTRAS,
    ...overrides,
  };
}

/** An action as its create makes it, at noon unless `createdAt` says otherwise: pending, or held with `approve`. */
export function anAction(overrides: Partial<Action> = {}): Action {
  const createdAt = overrides.createdAt ?? NOON;
  const request = aRequest(overrides);
  return {
    ...request,
    ...firstState(request.approve, createdAt),
    id: systemIds.action(createdAt),
    accountId: ACCOUNT,
    revision: 1,
    createdAt,
    createdBy: "key:test",
    keyId: KEY,
    creator: { role: "owner", hold: "none" },
    policy: null,
    counted: [],
    ...overrides,
  };
}

/** A new action with the timeline and the notifications that its creation owes. */
export function aCreation(overrides: Partial<Action> = {}): Creation {
  return creationOf(anAction(overrides));
}

export function creationOf(action: Action): Creation {
  const created: TimelineEvent = { type: "created", actor: action.createdBy };
  const events: readonly TimelineEvent[] = action.approve ? [created, { type: "held" }] : [created];
  return {
    action,
    events,
    outbox: enqueue(action, action.createdAt, events),
    claim: null,
    rulesVersion: "",
  };
}

/** Whoever decides in a test, at noon unless told otherwise. */
export function aDecision(now: Date = NOON, reason: string | null = null) {
  return { actor: "key:boss", reason, now, digest: "digest of what was approved" } as const;
}

/** What a service would write for a step that the rules allow; a refusal fails the test. */
export function writeOf(step: Change | DomainError, at: Date = NOON): ChangeWrite {
  if (step instanceof DomainError) throw new Error(`The law refused: ${step.message}`);
  return { change: step, at, outbox: enqueue({ ...step.before, ...step.after }, at, step.events) };
}

/** The target answered with this status. */
export function answered(code: number, body: string | null = null): Answered {
  return {
    kind: "answered",
    code,
    body,
    headers: null,
    truncated: false,
    brokenBy: null,
    retryAfter: null,
    location: null,
  };
}

/** What an attempt came to: answered with 200, unless it is told otherwise. */
export const aResult = (more: Partial<Result> = {}): Result => ({
  lastError: null,
  errorSource: null,
  responseCode: 200,
  responseBody: null,
  responseTruncated: false,
  responseHeaders: null,
  durationMs: 180,
  ...more,
});

type AttemptEvent = Extract<TimelineEvent, { type: "attempt" }>;

/** An attempt in a timeline: answered with 200, unless it is told otherwise. */
export const anAttempt = (attempt = 1, more: Partial<AttemptEvent> = {}): AttemptEvent => ({
  type: "attempt",
  attempt,
  outcome: "answered",
  response_code: 200,
  error: null,
  duration_ms: 41,
  next_retry_at: null,
  location: null,
  ...more,
});

/** What the engine would write when an attempt of an active action ended, ten milliseconds long. */
export function settled(action: Action, outcome: Outcome, overrides: Partial<AttemptEnd> = {}): ChangeWrite {
  const end: AttemptEnd = {
    outcome,
    now: NOON,
    durationMs: 10,
    timeoutMs: 30_000,
    backoff: { baseMs: 2_000, capMs: 3_600_000 },
    chance: 0.5,
    ...overrides,
  };
  return writeOf(settle(action, end), end.now);
}

/** The first page of everything that the account has. */
export function aQuery(overrides: Partial<ActionQuery> = {}): ActionQuery {
  return {
    accountId: ACCOUNT,
    statuses: [],
    method: null,
    host: null,
    dedupe: null,
    createdBy: null,
    createdAfter: null,
    createdBefore: null,
    search: NO_SEARCH,
    before: null,
    limit: 20,
    ...overrides,
  };
}

export function anAccount(overrides: Partial<Account> = {}): Account {
  return { id: systemIds.account(), sealedRootSecret: "sealed", createdAt: NOON, ...overrides };
}

export function anApiKey(overrides: Partial<ApiKey> = {}): ApiKey {
  const id = overrides.id ?? systemIds.key(NOON);
  return {
    id,
    accountId: ACCOUNT,
    name: "first",
    role: "owner",
    hold: "none",
    scope: "own",
    replaces: null,
    hash: `hash of ${id}`,
    last4: "abcd",
    createdAt: NOON,
    lastUsedAt: null,
    revokedAt: null,
    hosts: null,
    methods: null,
    dailyActions: null,
    expiresAt: null,
    createdBy: null,
    revokedBy: null,
    createdById: null,
    ...overrides,
  };
}

/** A pause of the whole account since noon. */
export function aPause(overrides: Partial<Pause> = {}): Pause {
  return {
    id: systemIds.pause(NOON),
    accountId: ACCOUNT,
    kind: "account",
    subject: "",
    reason: null,
    cancels: false,
    createdAt: NOON,
    createdBy: "key:boss",
    endedAt: null,
    endedBy: null,
    ...overrides,
  };
}

/** An entry of the audit log at noon. */
export function anAuditEntry(overrides: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at: NOON,
    accountId: ACCOUNT,
    actor: "key:boss",
    kind: "paused",
    subject: "pau_one",
    client: "192.0.2.7",
    detail: { via: "api" },
    ...overrides,
  };
}

/** The newest entries of the account's audit log, whatever their kind. */
export function anAuditQuery(overrides: Partial<AuditFilter> = {}): AuditFilter {
  const all = { kinds: [], actors: [], since: null, until: null, before: null };
  return { accountId: ACCOUNT, ...all, limit: 999, ...overrides };
}

/** A person with a session in an account, at noon; the password is nobody's. */
export function aPerson({ accountId = ACCOUNT, ...overrides }: Partial<PersonRow> & { accountId?: string } = {}) {
  const id = overrides.id ?? systemIds.person(NOON);
  const person: PersonRow = {
    id,
    email: `${id}@example.com`,
    passwordHash: `hash of ${id}`,
    createdAt: NOON,
    ...overrides,
  };
  return { person, session: aSession({ personId: id, accountId }) };
}

/** Everything of a sign-up: an account, its owner key, a person and a session. */
export function aSignUp(overrides: Partial<PersonRow> = {}): SignUp {
  const account = anAccount();
  const key = anApiKey({ accountId: account.id });
  return { account, key, ...aPerson({ accountId: account.id, ...overrides }) };
}

/** An invitation that ends in an hour. */
export function anInvitation(overrides: Partial<StoredInvitation> = {}): StoredInvitation {
  const id = overrides.id ?? systemIds.invitation(NOON);
  return {
    id,
    accountId: ACCOUNT,
    email: `${id}@example.com`,
    role: "approver",
    hash: `hash of ${id}`,
    createdAt: NOON,
    createdBy: "key:owner",
    createdById: null,
    expiresAt: later(3_600_000),
    ...overrides,
  };
}

/** Somebody who accepts an invitation to an account; a new person unless they are given. */
export async function joined(
  { team }: Pick<Store, "team">,
  { accountId, role = "reader", known, at = NOON }: Joins,
  more: Partial<Joining> = {},
) {
  const invitation = anInvitation({ accountId, role });
  const { person } = known === undefined ? aPerson({ accountId }) : { person: known };
  const session = aSession({ personId: person.id, accountId });
  if ((await team.invite(invitation, null, anAuditEntry())) !== "done") throw new Error("The invitation was refused.");
  const joining = { invitation, person, isNew: known === undefined, session, at, audit: [anAuditEntry()], ...more };
  if (!(await team.join(joining))) throw new Error("No one has joined.");
  return { person, session };
}

interface Joins {
  readonly accountId: string;
  readonly role?: MemberRole;
  readonly known?: PersonRow;
  readonly at?: Date;
}

/** A session that ends in an hour. */
export function aSession(overrides: Partial<SessionRow> = {}): SessionRow {
  const hash = systemIds.request();
  const of = { personId: "per_one", accountId: ACCOUNT, createdAt: NOON, expiresAt: later(3_600_000) };
  return { hash, ...of, secretHash: null, client: null, browser: null, lastSeenAt: null, ...overrides };
}

/** A link that ends in an hour and makes the first person of its account, unless it says whose password it renews. */
export function aWelcomeLink(overrides: Partial<WelcomeLink> = {}): WelcomeLink {
  const hash = systemIds.request();
  return { hash, personId: null, accountId: ACCOUNT, createdAt: NOON, expiresAt: later(3_600_000), ...overrides };
}

/** A channel to an incoming webhook. */
export function aChannel(overrides: Partial<Channel> = {}): Channel {
  return {
    id: systemIds.channel(NOON),
    accountId: ACCOUNT,
    name: "ops",
    kind: "slack",
    to: [],
    url: "https://hooks.slack.example/services/T0/B0/abcdefgh1234",
    remindAfterMinutes: null,
    enabled: true,
    createdAt: NOON,
    createdBy: "user:ann@example.com",
    ...overrides,
  };
}

/** Their ids are in the order in which they were made. */
let jobsMade = 0;

export function aBulkJob(overrides: Partial<BulkJob> = {}): BulkJob {
  jobsMade += 1;
  return {
    id: `blk_${String(jobsMade).padStart(9, "0")}`,
    accountId: ACCOUNT,
    operation: "retry",
    filter: '{"status":["failed"],"q":"O\'Brien \\ud800"}',
    reason: null,
    status: "running",
    matching: 3,
    done: 0,
    failed: 0,
    createdAt: NOON,
    createdBy: "key:ops",
    keyId: "key_ops",
    personId: "",
    client: "192.0.2.7",
    finishedAt: null,
    stoppedBy: null,
    ...overrides,
  };
}

/** A rule as it is stored, which holds everything. */
export const aRule = (id: string, more: Partial<RuleRow> = {}): RuleRow => ({
  id,
  accountId: ACCOUNT,
  version: 1,
  definition: `{"name":"${id}","effect":"hold"}`,
  createdAt: NOON,
  createdBy: "key:boss",
  changedAt: NOON,
  changedBy: "key:boss",
  ...more,
});

/** A count of a rule; by default one call of at most one. */
export const aRuleCount = (more: Partial<RuleCount> = {}): RuleCount => {
  const start = NOON.getTime();
  const part = { start, from: start, to: start, until: start + 60_000 };
  return { ruleId: "rul_a", subject: "s", ...part, amount: "1", limit: "1", asksOnce: false, ...more };
};

/** A grant for the calls of the key, for an hour. */
export const aGrant = (more: Partial<Grant> = {}): Grant => ({
  id: systemIds.grant(NOON),
  accountId: ACCOUNT,
  keyId: KEY,
  actionId: "act_approved",
  likeness: "digest of what has to be equal",
  vary: ["body.amount"],
  max: { "body.amount": 5000 },
  calls: 20,
  used: 0,
  expiresAt: new Date(NOON.getTime() + 3_600_000),
  createdAt: NOON,
  createdBy: "key:boss",
  createdById: "key_boss",
  endedAt: null,
  endedBy: null,
  ...more,
});

/** A credential for one host, with what stands for its secret. */
export const aCredential = (more: Partial<SealedCredential> = {}): SealedCredential => ({
  id: systemIds.credential(NOON),
  accountId: ACCOUNT,
  name: "stripe-live",
  settings: { kind: "bearer" },
  sealedSecret: "cccccccc.secret",
  hint: "4242",
  hosts: ["api.stripe.com"],
  paths: null,
  methods: null,
  keys: [],
  enabled: true,
  expiresAt: null,
  revision: 1,
  createdAt: NOON,
  createdBy: "key:boss",
  replacedAt: NOON,
  lastUsedAt: null,
  echoes: [],
  ...more,
});
/** A request of a key for a credential that stands for a week. */
export const aCredentialRequest = (more: Partial<CredentialRequest> = {}): CredentialRequest => ({
  id: systemIds.credentialRequest(more.createdAt ?? NOON),
  accountId: ACCOUNT,
  keyId: KEY,
  host: "api.stripe.com",
  name: "stripe-live",
  kind: "bearer",
  paths: ["/v1/charges"],
  methods: ["GET", "POST"],
  reason: "To refund order 4711.",
  createdAt: NOON,
  createdBy: "key:agent",
  expiresAt: later(CREDENTIAL_REQUEST_MS),
  decision: null,
  decidedAt: null,
  decidedBy: null,
  decisionReason: null,
  credential: null,
  ...more,
});

/** A connection of OAuth that lasts an hour; of another kind unless told otherwise it belongs to none. */
export function anArtifact(overrides: Partial<OAuthArtifact> = {}): OAuthArtifact {
  const id = overrides.id ?? `artifact ${systemIds.row(NOON)}`;
  const kind = overrides.kind ?? "Grant";
  return {
    id,
    kind,
    accountId: ACCOUNT,
    keyId: null,
    grantId: kind === "Grant" ? id : null,
    sealedPayload: "aaaaaaaa.payload",
    createdAt: NOON,
    consumedAt: null,
    expiresAt: later(3_600_000),
    ...overrides,
  };
}
