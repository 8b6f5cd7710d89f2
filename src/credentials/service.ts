import { type AuditCounts, auditOf } from "../core/audit.ts";
import {
  type Credential,
  type CredentialKind,
  type CredentialPatch,
  type CredentialStore,
  type SealedCredential,
} from "../core/credential.ts";
import { DomainError, invalidField, invalidFields, type Issue, notFound, accountFull } from "../core/domain-error.ts";
import type { SealedPlace } from "../core/account-store.ts";
import { CREDENTIAL_HINT_FROM_CHARS, CREDENTIAL_USE_DAYS, CREDENTIALS_MAX, KEYS_LISTED_MAX } from "../core/limits.ts";
import { expiryIssues } from "../core/key-limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type KnownCredentials, mayUse } from "./known.ts";
import { boundsFrom } from "./bounds.ts";
import { type ChangeCredential, type CreateCredential, settingsFrom } from "./schemas.ts";
import { secretProblem } from "./kinds.ts";

/** Changes of one credential that race with others are tried so often. */
const TRIES_MAX = 5;

export type CredentialService = ReturnType<typeof createCredentialService>;

export function createCredentialService(
  { store: { credentials, accounts, audit }, clock, ids }: AppContext,
  known: Pick<KnownCredentials, "refresh">,
  secrets: Pick<Secrets, "seal">,
) {
  /** What the caller may know, by name. Throws nothing for agents without any. */
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

  /** Of the keys that may use a credential: each must be one of an agent in this account. */
  const keyIssues = async (accountId: string, given: readonly string[] | undefined): Promise<readonly Issue[]> => {
    if (given === undefined || given.length === 0) return [];
    const stored = await accounts.keys(accountId, KEYS_LISTED_MAX);
    const agents = new Set(stored.filter(({ role }) => role === "agent").map(({ id }) => id));
    return given.flatMap((id, at) => (agents.has(id) ? [] : [{ field: `keys.${at}`, message: NOT_AN_AGENT }]));
  };

  const seal = (accountId: string, id: string, kind: CredentialKind, secret: string) => ({
    // With the account, so that a row that is moved to another one can't be opened there.
    sealedSecret: secrets.seal(JSON.stringify([accountId, secret]), credentialPlace(id)),
    // What people see is what they know the secret by; a short one would be half known.
    hint: kind === "basic" || kind === "hmac" || secret.length < CREDENTIAL_HINT_FROM_CHARS ? null : secret.slice(-4),
    replacedAt: clock.now(),
  });

  return {
    list,
    find,

    /** How often each was sent in the last days, for owners; null: for others. */
    async uses({ role, accountId }: Caller): Promise<CredentialUses | null> {
      if (role !== "owner") return null;
      // Each use is an entry of the audit log.
      const kinds = ["credential_used", "credential_tested"] as const;
      return usesOf(await audit.count({ accountId, kinds, until: clock.now(), days: CREDENTIAL_USE_DAYS }));
    },

    /** Throws `validation_error`, also at `CREDENTIALS_MAX`. `store` writes it with what belongs in the same commit. */
    async add(
      caller: Caller,
      body: CreateCredential,
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
      const id = ids.credential();
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
        ...seal(accountId, id, body.kind, body.secret),
      };
      const detail = { name: body.name, kind: body.kind, hosts: credential.hosts.join(" ") };
      const added = await store(credential, auditOf(caller, { kind: "credential_added", subject: id, detail }, now));
      if (added === "taken") throw invalidField("name", `This account has a credential ${body.name} already.`);
      if (added === "full") {
        throw accountFull(CREDENTIALS_MAX, "credentials", "Delete one first.");
      }
      await known.refresh(accountId);
      return credential;
    },

    /** What has been requested with it follows: its next send asks for the secret and the bounds as they are then. Throws `not_found`. */
    async change(caller: Caller, name: string, body: ChangeCredential): Promise<Credential> {
      authorize(caller, "manage");
      const { secret, keys, enabled, expires_at: end, unset = [] } = body;
      const { bounds, issues: outside } = boundsFrom(body);
      const expiresAt = end === undefined ? null : new Date(end);
      const given = Object.keys(body).filter((field) => field !== "unset");
      const { settings } = await find(caller, name);
      const problem = secret === undefined ? null : secretProblem(settings.kind, secret);
      const issues = [
        ...outside,
        ...(expiresAt === null ? [] : expiryIssues(expiresAt, clock.now())),
        ...unset.filter((field) => given.includes(field)).map((field) => ({ field, message: "Is also in unset." })),
        ...(problem === null ? [] : [{ field: "secret", message: problem }]),
        ...(await keyIssues(caller.accountId, keys)),
      ];
      if (issues.length > 0) throw invalidFields(issues);
      const detail = { name, changed: [...given, ...unset].join(", ") };
      for (let tries = 0; tries < TRIES_MAX; tries += 1) {
        const stored = await find(caller, name);
        const { id, accountId } = stored;
        const patch: CredentialPatch = {
          ...bounds,
          ...(unset.includes("paths") && { paths: null }),
          ...(unset.includes("methods") && { methods: null }),
          ...(unset.includes("expires_at") && { expiresAt: null }),
          ...(keys !== undefined && { keys }),
          ...(enabled !== undefined && { enabled }),
          ...(expiresAt !== null && { expiresAt }),
          ...(secret !== undefined && { secret: seal(accountId, id, settings.kind, secret) }),
        };
        const audited = { kind: "credential_changed", subject: id, detail } as const;
        if (await credentials.change(stored, patch, auditOf(caller, audited, clock.now()))) {
          await known.refresh(accountId);
          return find(caller, name);
        }
      }
      throw new DomainError("unavailable", "The credential is being changed by others. Try again.");
    },

    /** Held and pending actions with it fail when they are to be sent. Throws `not_found`. */
    async remove(caller: Caller, name: string): Promise<void> {
      authorize(caller, "manage");
      const { id } = await find(caller, name);
      const audited = { kind: "credential_removed", subject: id, detail: { name } } as const;
      if (!(await credentials.remove(caller.accountId, id, auditOf(caller, audited, clock.now()))))
        throw notFound("credential");
      await known.refresh(caller.accountId);
    },
  };
}

export const credentialPlace = (id: string): SealedPlace => ({
  table: "credentials",
  row: id,
  column: "sealed_secret",
});

const NOT_AN_AGENT =
  "Is no agent's key of this account. Owners may use every credential, and other keys create nothing.";

/** How often credentials were sent lately, also to try them. */
export interface CredentialUses {
  /** By the id of the credential: the uses of each day, the oldest first. */
  readonly byDay: ReadonlyMap<string, readonly number[]>;
  /** Whether every use is counted, and not only the newest ones. */
  readonly isWhole: boolean;
}

export function usesOf({ counts, isWhole }: AuditCounts): CredentialUses {
  const byDay = new Map<string, readonly number[]>();
  for (const { subject, daysAgo, count } of counts) {
    byDay.set(subject, (byDay.get(subject) ?? NONE).with(CREDENTIAL_USE_DAYS - 1 - daysAgo, count));
  }
  return { byDay, isWhole };
}

const NONE: readonly number[] = Array.from({ length: CREDENTIAL_USE_DAYS }, () => 0);

/** The uses of one credential by day, the oldest first. */
export function daysOf({ byDay }: CredentialUses, id: string): readonly number[] {
  return byDay.get(id) ?? NONE;
}

export function sumOf(days: readonly number[]): number {
  return days.reduce((sum, count) => sum + count, 0);
}

export const NO_USES: CredentialUses = { byDay: new Map(), isWhole: true };
