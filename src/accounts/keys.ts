import type { AppContext } from "../runtime/app-context.ts";
import type { Authenticate } from "../core/session.ts";
import type { Ids } from "../core/ids.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { type ApiKey, type KeyUse, type Revocation, hasEnded, keysOfFormer } from "../core/account-store.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { type AuditDetail, type Audited, auditEntry } from "../core/audit.ts";
import type { Credential, KnownCredentials } from "../core/credential.ts";
import { expiryIssues, inheritedExpiryIssues, readHosts } from "../core/key-limits.ts";
import {
  authorize,
  type Caller,
  hasScope,
  isWeakerHold,
  type KeyLimits,
  madeBy,
  NO_KEY_LIMITS,
  notManager,
} from "../core/roles.ts";
import { DomainError, invalidFields, type Issue, notFound } from "../core/domain-error.ts";
import {
  AUDITED_LIST_CHARS_MAX,
  FLASH_MS_MAX,
  HELD_PER_KEY_MAX,
  KEYS_LISTED_MAX,
  LIVE_KEYS_MAX,
  UNFINISHED_COUNTED_MAX,
} from "../core/limits.ts";
import { NO_FILTER } from "../core/store.ts";
import type { UnfinishedOnRevoke } from "../core/pause.ts";
import type { PauseService } from "../pauses/pauses.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import {
  CreatedKeyJson,
  CreateKeyBody,
  KeyListJson,
  KeyParams,
  LimitsJson,
  MadeByParameters,
  RevokedKeyJson,
  RevokeParameters,
  serializeCreatedKey,
  serializeListedKey,
  serializeRevokedKey,
} from "./key-schemas.ts";

interface KeyNeeds {
  readonly secrets: Pick<Secrets, "hash" | "keyOfForm" | "newApiKey">;
  readonly pauseService: PauseService;
  readonly signUpGate: SignUpGate;
  readonly knownCredentials: KnownCredentials;
  /** Drops a revoked key from the cache and ends its open streams and waits. */
  readonly forget: Authenticate["forget"];
}

export type KeyService = ReturnType<typeof createKeyService>;

export function createKeyService({ store, clock, ids: newIds }: AppContext, needs: KeyNeeds) {
  const { accounts, actions, pauses, credentials, team } = store;
  const { secrets, pauseService, signUpGate, knownCredentials, forget } = needs;

  const countUnfinished = async ({ accountId, id }: Pick<ApiKey, "accountId" | "id">) => {
    const [{ ids }, heldActions] = await Promise.all([
      pauses.unfinished(accountId, id, UNFINISHED_COUNTED_MAX),
      actions.heldTotal(accountId, { ...NO_FILTER, keyId: id }, HELD_PER_KEY_MAX),
    ]);
    return { unfinishedActions: ids.length, heldActions };
  };

  /** Throws `too_many_keys`. Concurrent creates may exceed the bound by their number, which is harmless. */
  const requireRoom = async (accountId: string): Promise<void> => {
    const live = (await accounts.keys(accountId, LIVE_KEYS_MAX)).filter(({ revokedAt }) => revokedAt === null);
    if (live.length < LIVE_KEYS_MAX) return;
    throw new DomainError("too_many_keys", `This account has ${LIVE_KEYS_MAX} live keys; revoke one of them first.`);
  };

  return {
    /** The account's keys, live ones first, without the keys themselves. */
    async list(caller: Caller): Promise<readonly ApiKey[]> {
      authorize(caller, "manage");
      return accounts.keys(caller.accountId, KEYS_LISTED_MAX);
    },

    /** The same keys with what each has done. `createdBy`: only keys that this person or key created; null: all. */
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
     * in the first account. `form`: what names a form of a session; sent again within `FLASH_MS_MAX`, by a double click or a
     * reload, to whichever node, it gets the key that it has made (`isFound`). `more`: for the audit log. Throws `validation_error`,
     * and `too_many_keys` if the account has `LIVE_KEYS_MAX` live keys.
     */
    async create(caller: Caller, request: CreateKeyBody, form: string | null = null, more: AuditDetail = {}) {
      authorize(caller, "manage");
      const { accountId } = caller;
      const now = clock.now();
      const ofForm = form === null ? null : secrets.keyOfForm(form);
      const made = ofForm === null ? null : await accounts.keyByHash(secrets.hash(ofForm.key));
      if (ofForm !== null && made !== null && now.getTime() - made.createdAt.getTime() < FLASH_MS_MAX) {
        return { row: made, key: ofForm.key, closesSignUps: false, isFound: true };
      }
      const { replaces = null } = request;
      const before = replaces === null ? null : await accounts.findKey(accountId, replaces);
      const asked = askedKey(request, before, await credentials.list(accountId), now);
      await requireRoom(accountId);
      const { id, key } = ofForm !== null && made === null ? ofForm : { id: newIds.key(now), key: secrets.newApiKey() };
      const given = { accountId, ...asked.key, ...madeBy(caller) };
      const row = { ...keyRow({ secrets, ids: newIds }, key, given, now), id };
      const stop = await signUpGate.stopFor(caller, row.hold, row.id);
      // Written before the key, so that it has them from the beginning.
      if (asked.credentials.length > 0) {
        const allowed = asked.credentials.map((one) => one.id);
        await credentials.allow(accountId, row.id, allowed);
        await knownCredentials.refresh(accountId);
      }
      const audited = keyCreated(row, asked.credentials);
      const audit = auditEntry(caller, { ...audited, detail: { ...audited.detail, ...more } }, row.createdAt);
      // Its form was sent to another node, or twice at once.
      const isFound = !(await accounts.addKey(row, audit, stop ?? undefined, true));
      // The caller has lost the right since the request began. Nobody must leave a key behind.
      if (isFound && (await accounts.keyByHash(row.hash)) === null) throw notManager(caller);
      if (stop !== null) await signUpGate.applyStop();
      return { row, key, closesSignUps: stop !== null, isFound };
    },

    /**
     * Revokes a key for good. Idempotent. Throws `not_found`. Callers may revoke their own key and the account's last one, so
     * that a leaked key can always be revoked; `outgate new-owner-key` or a new `BOOTSTRAP_API_KEY` gives access again. With
     * `pause` and `cancel` none of the key's actions is claimed after this resolves. `createdKeys`: live ones.
     */
    async revoke(caller: Caller, id: string, unfinished: UnfinishedOnRevoke = "keep") {
      authorize(caller, "manage");
      const now = clock.now();
      const audit = auditEntry(caller, { kind: "key_revoked", subject: id, detail: { unfinished } }, now);
      const by = caller.actor;
      const write = (pause?: Revocation["pause"]) =>
        accounts.revokeKey(caller.accountId, id, now, pause === undefined ? { by, audit } : { by, audit, pause });
      const revoked = await (unfinished === "keep"
        ? write()
        : pauseService.pauseRevoked(caller, id, unfinished === "cancel", write));
      if (revoked === null) throw notFound("key");
      // After the write, so that a read that starts now finds the key revoked.
      forget(revoked.hash);
      const [left, keys] = await Promise.all([
        countUnfinished(revoked),
        accounts.keys(caller.accountId, KEYS_LISTED_MAX),
      ]);
      const createdKeys = keys.filter((key) => key.createdById === id && !hasEnded(key, now)).length;
      return { ...revoked, ...left, createdKeys };
    },

    /** How many unfinished actions a key has, and how many of them await approval, each up to a bound. */
    async unfinished(caller: Caller, id: string) {
      authorize(caller, "manage");
      return countUnfinished({ accountId: caller.accountId, id });
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

/** What a request makes of a key, with what it inherits from the one before it. Throws `validation_error` with all issues. */
function askedKey(request: CreateKeyBody, before: ApiKey | null, all: readonly Credential[], now: Date) {
  const { name, role, replaces = null } = request;
  const inherited = request.inherit_limits === false ? null : before;
  const { limits, issues: limitIssues } = limitsIn(request, inherited, now);
  const { credentials, issues: credentialIssues } = credentialsIn(request, inherited, all);
  const issues = [...keyIssues(request, before), ...limitIssues, ...credentialIssues];
  if (issues.length > 0) throw invalidFields(issues);
  const hold = request.hold ?? before?.hold ?? "none";
  const scope = hasScope(role) ? (request.scope ?? before?.scope ?? "own") : "own";
  return { key: { name, role, hold, scope, replaces, ...limits }, credentials };
}

/** The credentials that a new key may use, and what is wrong with them. An owner's key may use all anyway. */
function credentialsIn(
  { credentials: given, role }: CreateKeyBody,
  before: ApiKey | null,
  all: readonly Credential[],
): { readonly credentials: readonly Credential[]; readonly issues: readonly Issue[] } {
  if (role !== "agent") {
    const message = `Only keys with the role agent need it; leave it out with the role ${role}.`;
    const isGiven = given !== undefined && given.length > 0;
    return { credentials: [], issues: isGiven ? [{ field: "credentials", message }] : [] };
  }
  if (given === undefined) {
    return { credentials: before === null ? [] : all.filter(({ keys }) => keys.includes(before.id)), issues: [] };
  }
  const message = "This account has no credential of this name.";
  const issues = given.flatMap((name, at) =>
    all.some((one) => one.name === name) ? [] : [{ field: `credentials.${at}`, message }],
  );
  return { credentials: all.filter(({ name }) => given.includes(name)), issues };
}

/** The limits of a new key in normal form, and what is wrong with them. `before`: the key whose limits it inherits; null: none. */
function limitsIn(
  { hosts: given, methods, daily_actions: dailyActions, expires_at: end }: CreateKeyBody,
  before: KeyLimits | null,
  now: Date,
): { readonly limits: KeyLimits; readonly issues: readonly Issue[] } {
  const inherited = before ?? NO_KEY_LIMITS;
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

function keyIssues(request: CreateKeyBody, before: ApiKey | null): readonly Issue[] {
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

export function keyCreated(row: ApiKey, credentials: readonly Pick<Credential, "name">[] = []): Audited {
  const { id, name, role, hold, scope, replaces, last4 } = row;
  const limits = Object.entries(toJson(LimitsJson, row)).map(([limit, value]) => [limit, inOneLine(value)] as const);
  const more = {
    ...(credentials.length > 0 && { credentials: inOneLine(credentials.map((one) => one.name)) }),
    ...(hasScope(role) && { scope }),
    ...(replaces !== null && { replaces }),
    ...Object.fromEntries(limits),
  };
  return { kind: "key_created", subject: id, detail: { name, role, hold, ...more, last4 } };
}

/** A detail of an entry is one line. */
function inOneLine(value: string | number | readonly string[]): string | number {
  return typeof value === "object" ? value.join(" ").slice(0, AUDITED_LIST_CHARS_MAX) : value;
}

type NewKey = Pick<ApiKey, "accountId" | "name" | "role"> &
  Partial<Pick<ApiKey, "hold" | "scope" | "replaces" | "createdBy" | "createdById" | keyof KeyLimits>>;

/** The row of a new key, with its hash and last four characters. No hold and no limits unless they are given. */
export function keyRow(
  { secrets, ids }: { readonly secrets: Pick<Secrets, "hash">; readonly ids: Pick<Ids, "key"> },
  key: string,
  given: NewKey,
  now: Date,
): ApiKey {
  return {
    ...NO_KEY_LIMITS,
    hold: "none",
    scope: "own",
    replaces: null,
    createdBy: null,
    createdById: null,
    ...given,
    id: ids.key(now),
    hash: secrets.hash(key),
    last4: key.slice(-4),
    createdAt: now,
    lastUsedAt: null,
    revokedAt: null,
    revokedBy: null,
  };
}

export function keyRoutes({ keyService }: { readonly keyService: KeyService }) {
  return createApiRoutes()
    .get(
      "/v1/keys",
      async ({ caller, query: { created_by: createdBy } }) =>
        jsonResponse({ data: (await keyService.listWithUse(caller, createdBy)).map(serializeListedKey) }),
      operation({
        operationId: "listKeys",
        permission: "manage",
        summary: "List the account's keys",
        description: "Lists live keys first, then revoked ones, with their limits and what they have done.",
        notes: ["The secret keys themselves are never shown."],
        query: MadeByParameters,
        answers: { 200: { description: "The keys.", schema: KeyListJson } },
      }),
    )
    .post(
      "/v1/keys",
      async ({ caller, body }) => {
        const { row, key } = await keyService.create(caller, body);
        return jsonResponse(serializeCreatedKey(row, key), 201, { "cache-control": "no-store" });
      },
      operation({
        operationId: "createKey",
        permission: "manage",
        summary: "Create a key; it is shown once",
        description: "Creates a key. Only this response shows it.",
        notes: [
          "A key that replaces another acts on what that key created. It has each of its limits that the request leaves out, unless `inherit_limits` is false.",
          "A create or retry beyond a limit gets 403.",
          `An account can have ${LIVE_KEYS_MAX} live keys; a further one gets 409.`,
          "The first key with a hold in the first account closes sign-ups, unless SIGNUPS is open.",
        ],
        body: jsonBody(CreateKeyBody),
        answers: { 201: { description: "The new key.", schema: CreatedKeyJson, headers: ["Cache-Control"] } },
        errors: ["too_many_keys"],
      }),
    )
    .delete(
      "/v1/keys/:id",
      async ({ caller, params: { id }, query: { unfinished } }) => {
        return jsonResponse(serializeRevokedKey(await keyService.revoke(caller, id, unfinished)));
      },
      operation({
        operationId: "revokeKey",
        permission: "manage",
        summary: "Revoke a key",
        description: "Revokes a key at once, also for open streams and sessions.",
        notes: [
          "Revoking a revoked key returns it again.",
          "Its held actions stay held; their approvers see that the key was revoked, by whom and when.",
          "Keys and invitations that an owner key made are found by `created_by`. Its open invitations are void, unless another owner key replaces it.",
        ],
        params: KeyParams,
        query: RevokeParameters,
        answers: { 200: { description: "The revoked key.", schema: RevokedKeyJson } },
      }),
    );
}
