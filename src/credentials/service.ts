import { type AuditCounts, type AuditDetail, auditEntry } from "../core/audit.ts";
import {
  type Credential,
  type CredentialKind,
  type CredentialPatch,
  type CredentialStore,
  type SealedCredential,
  type KnownCredentials,
  mayUse,
} from "../core/credential.ts";
import { DomainError, invalidField, invalidFields, type Issue, notFound, accountFull } from "../core/domain-error.ts";
import {
  AUDITED_KEYS_MAX,
  CREDENTIAL_USE_DAYS,
  CREDENTIALS_MAX,
  KEYS_LISTED_MAX,
  CREDENTIAL_TEST_BODY_CHARS_MAX,
  MESSAGE_TIMEOUT_MS,
} from "../core/limits.ts";
import { expiryIssues } from "../core/key-limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import { credentialPlace, type CredentialUse } from "./use.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { boundsFrom } from "./bounds.ts";
import {
  type ChangeCredentialBody,
  type CreateCredentialBody,
  type CredentialTestJson,
  settingsFrom,
} from "./schemas.ts";
import { secretProblem } from "./kinds.ts";
import { USER_AGENT } from "../config/config.ts";
import type { CheckTarget } from "../config/target-policy.ts";
import { NO_EXTRAS } from "../core/action.ts";
import { describeOutcome, isSuccess, type Outcome } from "../core/outcome.ts";
import { requireFree } from "../core/policy.ts";
import type { OutboundRequest, Sender } from "../outbound/sender.ts";
import type { ActivePauses } from "../pauses/pauses.ts";
import { maskResponseHeaders, maskText } from "../receipts/masking.ts";
import { readHeaders } from "../receipts/response-headers.ts";

/** From this many characters on, people see a secret's last four. */
const CREDENTIAL_HINT_FROM_CHARS = 16;

/** How often a change is tried if others change the credential first. */
const TRIES_MAX = 5;

/** The members that a patch changes, by the names of the API. Its lists have no order. */
function changedIn(stored: Credential, patch: CredentialPatch): readonly string[] {
  const plain = (value: unknown) => (Array.isArray(value) ? new Set<unknown>(value) : value);
  const members = Object.entries(patch).filter(
    ([member, value]) => !Bun.deepEquals(plain(value), plain(Reflect.get(stored, member))),
  );
  return members.map(([member]) => (member === "expiresAt" ? "expires_at" : member));
}

/** For the audit log: which keys may use a credential from now on, and which may no more. */
function keysChanged(before: readonly string[], after: readonly string[]): AuditDetail {
  const ids = (some: readonly string[], others: readonly string[]) => {
    const found = some.filter((id) => !others.includes(id));
    const left = found.splice(AUDITED_KEYS_MAX).length;
    return found.join(" ") + (left === 0 ? "" : ` and ${left} more`);
  };
  const [added, removed] = [ids(after, before), ids(before, after)];
  return { ...(added !== "" && { keys_added: added }), ...(removed !== "" && { keys_removed: removed }) };
}

/** Differs after each change, also of a credential that took the name of a deleted one. */
export function credentialVersion({ id, revision }: Credential): string {
  return `${id} ${revision}`;
}

const CHANGED_SINCE =
  "Someone has changed this credential since you opened it. Open it again to see the change, or save again to replace it.";

export type CredentialService = ReturnType<typeof createCredentialService>;

interface CredentialNeeds {
  readonly known: KnownCredentials;
  readonly secrets: Pick<Secrets, "seal">;
  readonly credentialUse: Pick<CredentialUse, "forTry">;
  readonly sender: Sender;
  readonly paused: Pick<ActivePauses, "isPaused">;
  readonly checkTarget: CheckTarget;
}

export function createCredentialService(
  { store: { credentials, accounts, audit }, clock, ids }: AppContext,
  { known, secrets, credentialUse, sender, paused, checkTarget }: CredentialNeeds,
) {
  const countTry = createMessageLimit(clock, "This account has just tried credentials.");
  /** The credentials that the caller may know, by name. */
  const list = async (caller: Caller): Promise<readonly Credential[]> => {
    authorize(caller, "read");
    const all = await credentials.list(caller.accountId);
    return caller.role === "agent" ? all.filter((one) => mayUse(caller, one)) : all;
  };

  const find = async (caller: Caller, name: string): Promise<Credential> => {
    const found = (await list(caller)).find((one) => one.name === name);
    if (found === undefined) throw notFound("credential");
    return found;
  };

  /** Checks the keys that may use a credential: each must be an agent's key of this account. */
  const keyIssues = async (accountId: string, given: readonly string[] | undefined): Promise<readonly Issue[]> => {
    if (given === undefined || given.length === 0) return [];
    const stored = await accounts.keys(accountId, KEYS_LISTED_MAX);
    const agents = new Set(stored.filter(({ role }) => role === "agent").map(({ id }) => id));
    return given.flatMap((id, at) => (agents.has(id) ? [] : [{ field: `keys.${at}`, message: NOT_AN_AGENT }]));
  };

  const seal = (accountId: string, id: string, kind: CredentialKind, secret: string, now: Date) => ({
    // Seals the account with it, so that a row moved to another account can't be opened there.
    sealedSecret: secrets.seal(JSON.stringify([accountId, secret]), credentialPlace(id)),
    // People recognise the secret by its end; of a short one, that would reveal half.
    hint: kind === "basic" || kind === "hmac" || secret.length < CREDENTIAL_HINT_FROM_CHARS ? null : secret.slice(-4),
    replacedAt: now,
  });

  return {
    list,
    find,

    /** How often each credential was sent in the last days, for owners; null for others. */
    async uses({ role, accountId }: Caller): Promise<CredentialUses | null> {
      if (role !== "owner") return null;
      // Each use is an audit entry.
      const kinds = ["credential_used", "credential_tested"] as const;
      return countUses(await audit.count({ accountId, kinds, until: clock.now(), days: CREDENTIAL_USE_DAYS }));
    },

    /** Adds a credential. `store` writes it, with what belongs in the same commit. Throws `validation_error`, also when full. */
    async add(
      caller: Caller,
      body: CreateCredentialBody,
      store: CredentialStore["add"] = (one, entry) => credentials.add(one, entry),
    ): Promise<Credential> {
      authorize(caller, "manage");
      const { accountId, actor: createdBy } = caller;
      const now = clock.now();
      const { settings, issues: wrong } = settingsFrom(body);
      const { bounds, issues: outside } = boundsFrom(body);
      const expiresAt = body.expires_at === undefined ? null : new Date(body.expires_at);
      const issues = [
        ...wrong,
        ...outside,
        ...(expiresAt === null ? [] : expiryIssues(expiresAt, now)),
        ...(await keyIssues(accountId, body.keys)),
      ];
      if (issues.length > 0) throw invalidFields(issues);
      const id = ids.credential(now);
      const credential: SealedCredential = {
        id,
        accountId,
        name: body.name,
        settings,
        hosts: bounds.hosts ?? [],
        paths: bounds.paths ?? null,
        methods: bounds.methods ?? null,
        keys: body.keys ?? [],
        enabled: body.enabled ?? true,
        expiresAt,
        revision: 1,
        createdAt: now,
        createdBy,
        lastUsedAt: null,
        echoes: [],
        ...seal(accountId, id, body.kind, body.secret, now),
      };
      const detail = {
        name: body.name,
        kind: body.kind,
        hosts: credential.hosts.join(" "),
        ...keysChanged([], credential.keys),
      };
      const added = await store(credential, auditEntry(caller, { kind: "credential_added", subject: id, detail }, now));
      if (added === "taken") throw invalidField("name", `This account already has a credential named ${body.name}.`);
      if (added === "full") {
        throw accountFull(CREDENTIALS_MAX, "credentials", "Delete one first.");
      }
      await known.refresh(accountId);
      return credential;
    },

    /**
     * Changes a credential. Actions requested with it use the secret and bounds as they are at their next send. `shown`: what
     * `credentialVersion` returned when it was shown; null: it doesn't matter. Throws `not_found`, and `validation_error` for another version.
     */
    async change(
      caller: Caller,
      name: string,
      body: ChangeCredentialBody,
      shown: string | null = null,
    ): Promise<Credential> {
      authorize(caller, "manage");
      const { secret, keys, enabled, expires_at: end, unset = [] } = body;
      const { bounds, issues: outside } = boundsFrom(body);
      const expiresAt = end === undefined ? null : new Date(end);
      const now = clock.now();
      for (let tries = 0; tries < TRIES_MAX; tries += 1) {
        // Read it in each try: it may have been replaced by one of another kind.
        const stored = await find(caller, name);
        if (shown !== null && shown !== credentialVersion(stored)) throw invalidField("version", CHANGED_SINCE);
        const { id, accountId, settings } = stored;
        const problem = secret === undefined ? null : secretProblem(settings.kind, secret);
        const issues = [
          ...outside,
          ...(expiresAt === null ? [] : expiryIssues(expiresAt, now)),
          ...unset.filter((field) => field in body).map((field) => ({ field, message: "Is also in unset." })),
          ...(problem === null ? [] : [{ field: "secret", message: problem }]),
          ...(await keyIssues(accountId, keys)),
        ];
        if (issues.length > 0) throw invalidFields(issues);
        const patch: CredentialPatch = {
          ...bounds,
          ...(unset.includes("paths") && { paths: null }),
          ...(unset.includes("methods") && { methods: null }),
          ...(unset.includes("expires_at") && { expiresAt: null }),
          ...(keys !== undefined && { keys }),
          ...(enabled !== undefined && { enabled }),
          ...(expiresAt !== null && { expiresAt }),
          ...(secret !== undefined && { secret: seal(accountId, id, settings.kind, secret, now) }),
        };
        const changed = changedIn(stored, patch);
        const detail = { name, changed: changed.join(", "), ...keysChanged(stored.keys, keys ?? stored.keys) };
        const audited = { kind: "credential_changed", subject: id, detail } as const;
        if (changed.length === 0 || (await credentials.change(stored, patch, auditEntry(caller, audited, now)))) {
          await known.refresh(accountId);
          return find(caller, name);
        }
      }
      throw new DomainError("unavailable", "The credential is being changed by others. Try again.");
    },

    /** Removes a credential. Held and pending actions with it fail when they are due. Throws `not_found`. */
    async remove(caller: Caller, name: string): Promise<void> {
      authorize(caller, "manage");
      const { id } = await find(caller, name);
      const audited = { kind: "credential_removed", subject: id, detail: { name } } as const;
      if (!(await credentials.remove(caller.accountId, id, auditEntry(caller, audited, clock.now()))))
        throw notFound("credential");
      await known.refresh(caller.accountId);
    },

    /**
     * Sends a GET with a credential at once and waits for at most `MESSAGE_TIMEOUT_MS`. Throws `not_found`, `validation_error` for a URL
     * to which calls may not go, `forbidden` outside the bounds, under a pause, and for keys with a hold or a limit, and `RetryLater`
     * after too many tries.
     */
    async test(caller: Caller, name: string, url: string): Promise<CredentialTestJson> {
      authorize(caller, "manage");
      const request = { url, method: "GET", headers: null, body: null, extras: NO_EXTRAS } as const;
      const checked = checkTarget(url);
      if ("refused" in checked) throw invalidField("url", checked.refused);
      requireFree(caller, request, HELD);
      const { host } = checked;
      const attempt = await credentialUse.forTry(caller, name, { ...request, host });
      const lane = { accountId: caller.accountId, keyId: caller.keyId ?? "", host };
      if (paused.isPaused(lane)) throw new DomainError("forbidden", PAUSED);
      countTry(caller.accountId);
      const sent: OutboundRequest = {
        url,
        method: "GET",
        headers: [
          ["User-Agent", USER_AGENT],
          ["Accept", "*/*"],
        ],
        body: null,
      };
      const outcome = await sender.send(sent, {
        timeoutMs: MESSAGE_TIMEOUT_MS,
        mayBegin: () => !paused.isPaused(lane),
        async complete(route) {
          const completed = await attempt.complete(sent, route);
          return typeof completed === "string" ? { kind: "not_sent", fault: completed } : completed;
        },
      });
      await attempt.answered();
      if (outcome.kind === "stopped") throw new DomainError("forbidden", PAUSED);
      return seen(outcome);
    },
  };
}

const NOT_AN_AGENT =
  "Is no agent's key of this account. Owners may use every credential, and other keys create nothing.";

/** How often credentials were sent recently, including tests. */
export interface CredentialUses {
  /** The number of uses per day, oldest first, by credential id. */
  readonly byDay: ReadonlyMap<string, readonly number[]>;
  /** Whether every use was counted, not only the newest ones. */
  readonly isWhole: boolean;
}

export function countUses({ counts, isWhole }: AuditCounts): CredentialUses {
  const byDay = new Map<string, readonly number[]>();
  for (const { subject, daysAgo, count } of counts) {
    byDay.set(subject, (byDay.get(subject) ?? NONE).with(CREDENTIAL_USE_DAYS - 1 - daysAgo, count));
  }
  return { byDay, isWhole };
}

const NONE: readonly number[] = Array.from({ length: CREDENTIAL_USE_DAYS }, () => 0);

/** The number of uses of one credential per day, oldest first. */
export function usesByDay({ byDay }: CredentialUses, id: string): readonly number[] {
  return byDay.get(id) ?? NONE;
}

export function sumOf(days: readonly number[]): number {
  return days.reduce((sum, count) => sum + count, 0);
}

export const NO_USES: CredentialUses = { byDay: new Map(), isWhole: true };

const HELD = "A key whose calls are held can't try credentials. Ask an owner whose calls are not held.";

const PAUSED = "Calls to this host are paused, and so are tries of credentials. Resume them first.";

/** Masks anything else that looks like a secret. The credential itself was masked before anything was cut. */
function seen(outcome: Outcome): CredentialTestJson {
  const error = isSuccess(outcome, "GET") ? null : describeOutcome(outcome, MESSAGE_TIMEOUT_MS);
  if (outcome.kind !== "answered") return { status: null, error, headers: {}, body: null, truncated: false };
  const { code, headers, body, truncated } = outcome;
  const text = body === null ? null : receivedText(body);
  // Mask before cutting, which might cut a secret in two.
  const masked = text === null ? null : maskText(text.slice(0, 2 * CREDENTIAL_TEST_BODY_CHARS_MAX), "decider");
  const shown = masked?.slice(0, CREDENTIAL_TEST_BODY_CHARS_MAX).toWellFormed() ?? null;
  return {
    status: code,
    error,
    headers: Object.fromEntries(readHeaders(headers === null ? null : maskResponseHeaders(headers, "decider"))),
    body: shown,
    truncated: truncated || (text !== null && text.length > CREDENTIAL_TEST_BODY_CHARS_MAX),
  };
}

/** The received text, from the form of `response_body`. */
function receivedText(json: string): string {
  const value: unknown = json.startsWith('"') ? JSON.parse(json) : json;
  return typeof value === "string" ? value : json;
}
