import type { AppContext } from "../runtime/app-context.ts";
import type { Authenticate } from "../core/session.ts";
import type { Ids } from "../core/ids.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { ApiKey, KeyUse, Revocation } from "../core/account-store.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { type Audited, auditOf } from "../core/audit.ts";
import type { Credential } from "../core/credential.ts";
import type { KnownCredentials } from "../credentials/known.ts";
import { expiryIssues, inheritedExpiryIssues, readHosts } from "../core/key-limits.ts";
import { hasEnded, keysOfFormer } from "../core/makers.ts";
import { authorize, type Caller, hasScope, holderIdOf, isWeakerHold, type KeyLimits } from "../core/roles.ts";
import type { CreateKey } from "./key-routes.ts";
import { DomainError, type Issue, invalidFields, notFound } from "../core/domain-error.ts";
import { HELD_PER_KEY_MAX, KEYS_LISTED_MAX, LIVE_KEYS_MAX, UNFINISHED_COUNTED_MAX } from "../core/limits.ts";
import { NO_FILTER } from "../core/store.ts";
import type { UnfinishedOnRevoke } from "../core/pause.ts";
import type { PauseService } from "../pauses/pauses.ts";

interface KeyNeeds {
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly pauseService: Pick<PauseService, "pauseRevoked">;
  readonly signUpGate: Pick<SignUpGate, "closed" | "stopFor">;
  readonly knownCredentials: Pick<KnownCredentials, "refresh">;
  /** Drops a revoked key from the cache and ends its open streams and waits. */
  readonly forget: Authenticate["forget"];
}

/** What a key has left to do. */
export interface Unfinished {
  /** Held and pending actions, up to `UNFINISHED_COUNTED_MAX`. */
  readonly unfinishedCount: number;
  /** Those of them that await approval, up to `HELD_PER_KEY_MAX`. */
  readonly heldCount: number;
}

export type KeyService = ReturnType<typeof createKeyService>;

export function createKeyService({ store, clock, ids: newIds }: AppContext, needs: KeyNeeds) {
  const { accounts, actions, pauses, credentials, team } = store;
  const { secrets, pauseService, signUpGate } = needs;

  const countUnfinished = async ({ accountId, id }: Pick<ApiKey, "accountId" | "id">): Promise<Unfinished> => {
    const [{ ids }, heldCount] = await Promise.all([
      pauses.unfinished(accountId, id, UNFINISHED_COUNTED_MAX),
      actions.heldTotal(accountId, { ...NO_FILTER, keyId: id }, HELD_PER_KEY_MAX),
    ]);
    return { unfinishedCount: ids.length, heldCount };
  };

  return {
    /** The account's keys, live ones first, without the keys themselves. */
    async list(caller: Caller): Promise<readonly ApiKey[]> {
      authorize(caller, "manage");
      return accounts.keys(caller.accountId, KEYS_LISTED_MAX);
    },

    /** The same with what each has done. `createdBy`: only those that this person or key created; null: all. */
    async listWithUse(caller: Caller, createdBy: string | null = null) {
      authorize(caller, "manage");
      const [keys, use, all] = await Promise.all([
        accounts.keys(caller.accountId, KEYS_LISTED_MAX),
        accounts.keyUse(caller.accountId, clock.now()),
        credentials.list(caller.accountId),
      ]);
      const some = keys.filter(({ createdById }) => createdBy === null || createdById === createdBy);
      const namesFor = (id: string) => all.filter((one) => one.keys.includes(id)).map(({ name }) => name);
      return some.map((key) => ({ ...key, ...(use.get(key.id) ?? UNUSED), credentials: namesFor(key.id) }));
    },

    /**
     * Creates a key. One that replaces another also acts on its actions and those of the keys before it, and inherits limits
     * that the request leaves out. Only this answer has `key` in clear text. `closesSignUps`: it is the first key with a hold
     * in the first account. Throws `validation_error`, and `too_many_keys` if the account has `LIVE_KEYS_MAX` live keys.
     */
    async create(caller: Caller, request: CreateKey) {
      authorize(caller, "manage");
      const { accountId } = caller;
      const { name, role, replaces = null } = request;
      const before = replaces === null ? null : await accounts.findKey(accountId, replaces);
      const now = clock.now();
      const limits = limitsIn(request, request.inherit_limits === false ? null : before, now);
      const toUse = credentialsFor(request, before, await credentials.list(accountId));
      const issues = [...issuesOf(request, before), ...limits.issues, ...toUse.issues];
      if (issues.length > 0) throw invalidFields(issues);
      // Concurrent creates may exceed the bound by their number, which is harmless.
      const live = (await accounts.keys(accountId, LIVE_KEYS_MAX)).filter(({ revokedAt }) => revokedAt === null);
      if (live.length >= LIVE_KEYS_MAX) {
        throw new DomainError(
          "too_many_keys",
          `This account has ${LIVE_KEYS_MAX} live keys; revoke one of them first.`,
        );
      }
      const key = secrets.newApiKey();
      const hold = request.hold ?? before?.hold ?? "none";
      const scope = hasScope(role) ? (request.scope ?? before?.scope ?? "own") : "own";
      const createdBy = { createdBy: caller.actor, createdById: holderIdOf(caller) };
      const asked = { accountId, key, name, role, hold, scope, replaces };
      const row = keyRow({ secrets, ids: newIds }, { ...asked, ...limits.limits, ...createdBy, now });
      const stop = await signUpGate.stopFor(caller, hold, row.id);
      // Before the key, so that it has them from the beginning.
      if (toUse.ids.length > 0) {
        await credentials.allow(accountId, row.id, toUse.ids);
        await needs.knownCredentials.refresh(accountId);
      }
      await accounts.addKey(row, auditOf(caller, keyCreated(row, toUse.names), row.createdAt), stop ?? undefined);
      if (stop !== null) await signUpGate.closed();
      return { row, key, closesSignUps: stop !== null };
    },

    /**
     * Revokes a key for good. Idempotent. Throws `not_found`. Callers may revoke their own key and the account's last one, so
     * that a leaked key can always be revoked; `outgate new-owner-key` or a new `BOOTSTRAP_API_KEY` gives access again. With
     * `pause` and `cancel` none of the key's actions is claimed after this resolves. `madeCount`: live keys that it made.
     */
    async revoke(caller: Caller, id: string, unfinished: UnfinishedOnRevoke = "keep") {
      authorize(caller, "manage");
      const now = clock.now();
      const audit = auditOf(caller, { kind: "key_revoked", subject: id, detail: { unfinished } }, now);
      const by = caller.actor;
      const write = (pause?: Revocation["pause"]) =>
        accounts.revokeKey(caller.accountId, id, now, pause === undefined ? { by, audit } : { by, audit, pause });
      const revoked = await (unfinished === "keep"
        ? write()
        : pauseService.pauseRevoked(caller, id, unfinished === "cancel", write));
      if (revoked === null) throw notFound("key");
      // After the write, so that a read that starts now finds the key revoked.
      needs.forget(revoked.hash);
      const [left, keys] = await Promise.all([
        countUnfinished(revoked),
        accounts.keys(caller.accountId, KEYS_LISTED_MAX),
      ]);
      const made = keys.filter((key) => key.createdById === id && !hasEnded(key, now));
      return { ...revoked, ...left, madeCount: made.length };
    },

    /** What a key has left to do. */
    async unfinished(caller: Caller, keyId: string): Promise<Unfinished> {
      authorize(caller, "manage");
      return countUnfinished({ accountId: caller.accountId, id: keyId });
    },

    /** The live keys whose makers may no longer manage the account, with those makers. */
    async ofFormer(caller: Caller): Promise<readonly ApiKey[]> {
      authorize(caller, "manage");
      const now = clock.now();
      const [keys, managers] = await Promise.all([
        accounts.keys(caller.accountId, KEYS_LISTED_MAX),
        team.managers(caller.accountId, now),
      ]);
      return keysOfFormer(keys, managers, now);
    },
  };
}

const UNUSED: KeyUse = { lastCall: null, actionsLastDay: 0, actionsToday: 0 };

/** The credentials that a new key may use, and what is wrong with them. An owner's key may use all of them anyway. */
function credentialsFor(
  { credentials: given, role, inherit_limits: inherits }: CreateKey,
  before: ApiKey | null,
  all: readonly Credential[],
): { readonly ids: readonly string[]; readonly names: readonly string[]; readonly issues: readonly Issue[] } {
  const issues: Issue[] = [];
  if (role !== "agent") {
    const message = `Only keys with the role agent need it; leave it out with the role ${role}.`;
    if (given !== undefined && given.length > 0) issues.push({ field: "credentials", message });
    return { ids: [], names: [], issues };
  }
  const own = before === null || inherits === false ? [] : all.filter(({ keys }) => keys.includes(before.id));
  const some = given === undefined ? own : all.filter(({ name }) => given.includes(name));
  for (const [at, name] of (given ?? []).entries()) {
    if (all.some((one) => one.name === name)) continue;
    issues.push({ field: `credentials.${at}`, message: "This account has no credential of this name." });
  }
  return { ids: some.map(({ id }) => id), names: some.map(({ name }) => name), issues };
}

/** The limits of a new key in normal form, and what is wrong with them. `before`: the key whose limits it inherits; null: none. */
function limitsIn(
  { hosts: given, methods, daily_actions: dailyActions, expires_at: end }: CreateKey,
  before: KeyLimits | null,
  now: Date,
): { readonly limits: KeyLimits; readonly issues: readonly Issue[] } {
  const inherited = before ?? NO_LIMITS;
  const hosts = given === undefined ? null : readHosts(given);
  const expiresAt = end === undefined ? null : new Date(end);
  return {
    limits: {
      hosts: hosts?.hosts ?? inherited.hosts,
      methods: methods === undefined ? inherited.methods : [...new Set(methods)],
      dailyActions: dailyActions ?? inherited.dailyActions,
      expiresAt: expiresAt ?? inherited.expiresAt,
    },
    issues: [
      ...(hosts?.issues ?? []),
      ...(expiresAt === null ? inheritedExpiryIssues(inherited, now) : expiryIssues(expiresAt, now)),
    ],
  };
}

function issuesOf(request: CreateKey, before: ApiKey | null): readonly Issue[] {
  const { role, hold, scope, replaces } = request;
  const issues: Issue[] = [];
  if (scope !== undefined && !hasScope(role)) {
    const message = `Only keys with the role agent have a scope; leave it out with the role ${role}.`;
    issues.push({ field: "scope", message });
  }
  if (replaces !== undefined && before === null) {
    issues.push({ field: "replaces", message: "This account has no key with this id." });
  }
  if (before !== null && hold !== undefined && isWeakerHold(hold, before.hold) && request.weaker_hold !== true) {
    const message = `Is weaker than the hold of the key that it replaces (${before.hold}). Set weaker_hold: true to confirm this, or leave hold out.`;
    issues.push({ field: "hold", message });
  }
  return issues;
}

export function keyCreated(
  { id, name, role, hold, scope, replaces, last4, ...limits }: ApiKey,
  credentials: readonly string[] = [],
): Audited {
  const { hosts, methods, dailyActions, expiresAt } = limits;
  const more = {
    ...(credentials.length > 0 && { credentials: credentials.join(" ").slice(0, AUDITED_LIST_CHARS_MAX) }),
    ...(hasScope(role) && { scope }),
    ...(replaces !== null && { replaces }),
    ...(hosts !== null && { hosts: hosts.join(" ").slice(0, AUDITED_LIST_CHARS_MAX) }),
    ...(methods !== null && { methods: methods.join(" ") }),
    ...(dailyActions !== null && { daily_actions: dailyActions }),
    ...(expiresAt !== null && { expires_at: expiresAt.toISOString() }),
  };
  return { kind: "key_created", subject: id, detail: { name, role, hold, ...more, last4 } };
}

/** A detail of an entry is one line. */
const AUDITED_LIST_CHARS_MAX = 1_000;

interface NewKeyRow
  extends
    Pick<ApiKey, "accountId" | "name" | "role">,
    Partial<Pick<ApiKey, "hold" | "scope" | "replaces" | "createdBy" | "createdById" | keyof KeyLimits>> {
  /** In clear text; the row has its hash and its last four characters. */
  readonly key: string;
  readonly now: Date;
}

const NO_LIMITS: KeyLimits = { hosts: null, methods: null, dailyActions: null, expiresAt: null };

/** The row of a new key; without a hold and limits unless they are given. */
export function keyRow(
  { secrets, ids }: { readonly secrets: Pick<Secrets, "hash">; readonly ids: Pick<Ids, "key"> },
  { key, now, hold = "none", scope = "own", replaces = null, createdBy = null, createdById = null, ...rest }: NewKeyRow,
): ApiKey {
  return {
    ...NO_LIMITS,
    ...rest,
    hold,
    scope,
    replaces,
    id: ids.key(),
    hash: secrets.hash(key),
    last4: key.slice(-4),
    createdAt: now,
    lastUsedAt: null,
    revokedAt: null,
    createdBy,
    revokedBy: null,
    createdById,
  };
}
