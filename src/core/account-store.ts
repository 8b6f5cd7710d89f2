import type { SettingsStore } from "./account-settings.ts";
import type { Action } from "./action.ts";
import type { AuditEntry } from "./audit.ts";
import type { Pause, PauseEnd } from "./pause.ts";
import type { Hold, KeyLimits, KeyScope, MemberRole, Role, Actor, Made } from "./roles.ts";

export interface Account {
  readonly id: string;
  /** Sealed by `Secrets`; signing secrets are derived from it. */
  readonly sealedRootSecret: string;
  readonly createdAt: Date;
}

/** How people tell accounts apart. */
export interface AccountLabel {
  /** The name that its owners gave it, which is untrusted to people whom they invite; null: they gave none. */
  readonly name: string | null;
  /** Address of its first person; null: it has none. */
  readonly email: string | null;
}

/** An account as the operator sees it. */
export interface ListedAccount {
  readonly id: string;
  /** Address of its first person; null: it has none. */
  readonly email: string | null;
  readonly createdAt: Date;
  /** Whether the first start created it. */
  readonly isFirst: boolean;
  /** Until the operator allows it, its keys are refused and none of its actions is sent. */
  readonly isStopped: boolean;
  readonly allowedAt: Date | null;
}

/** Stops all accounts that were not allowed. */
export interface AccountStop {
  readonly at: Date;
  /** Shown with their waiting actions. */
  readonly reason: string;
}

/** Written together with a key that has a hold. */
export interface HoldStop extends AccountStop {
  /** Written only if the key is the first one with a hold. */
  readonly audit: AuditEntry;
}

/** An API key as it is stored, without the key itself. */
export interface ApiKey extends KeyLimits {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope: KeyScope;
  /** Id of the key whose actions it took over. */
  readonly replaces: string | null;
  /** SHA-256 of the key, hex. */
  readonly hash: string;
  readonly last4: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
  /** Null: not known. */
  readonly createdBy: Actor | null;
  readonly revokedBy: Actor | null;
  /** Id of the person or key that created it; null: neither did, or it is not known. */
  readonly createdById: string | null;
}

/** The newest action of a key, as lists of keys show it. */
interface KeyCall extends Pick<Action, "id" | "createdAt" | "method" | "status"> {
  /** As it was created, so it may contain secrets. */
  readonly url: string;
  readonly responseCode: number | null;
}

/** What a key has done. */
export interface KeyUse {
  /** Null: none is left. */
  readonly lastCall: KeyCall | null;
  /** Stored actions of the last 24 hours, counted up to `KEY_ACTIONS_COUNTED_MAX`. */
  readonly actionsLastDay: number;
  /** Actions of today (UTC): exact for a key with a daily limit, else stored ones up to `KEY_ACTIONS_COUNTED_MAX`. */
  readonly actionsToday: number;
}

/** Written together with the revocation of a key. */
export interface Revocation {
  readonly by?: Actor;
  readonly audit?: AuditEntry;
  readonly pause?: { readonly pause: Pause; readonly audit: AuditEntry };
}

/** What the first account gets with its keys. */
interface FirstAccountExtras {
  /** Invites the account's first person. */
  readonly link: WelcomeLink;
  /** Facts of the store, by name. */
  readonly facts: Readonly<Record<string, string>>;
  /** Entries for the audit log. */
  readonly audit: readonly AuditEntry[];
}

export interface AccountStore {
  /** The account that the first start created; null before that. */
  first(): Promise<Account | null>;
  find(accountId: string): Promise<Account | null>;
  /**
   * Writes account, keys and extras in one commit. Only the first account gets extras: with extras, if there is an account
   * already, returns false and writes nothing.
   */
  create(account: Account, keys: readonly ApiKey[], extras?: FirstAccountExtras): Promise<boolean>;
  /**
   * `stop`: stops every account that was not allowed, in the same commit. False, and nothing is written: there is such a key, or with
   * `checksMaker` its maker was revoked or owns the account no more.
   */
  addKey(key: ApiKey, audit?: AuditEntry, stop?: HoldStop, checksMaker?: boolean): Promise<boolean>;
  /**
   * The keys whose actions a key took over, in order: the key that it replaced, the key that this one replaced, and so on, at
   * most `REPLACED_KEYS_MAX`.
   */
  replacedBy(keyId: string): Promise<readonly string[]>;
  /** One key of an account, revoked or not. */
  findKey(accountId: string, keyId: string): Promise<ApiKey | null>;
  /** Whether the first account has, or had, a key with a hold. */
  hasHold(): Promise<boolean>;
  /** Stops every account that was not allowed, except the first. Returns how many it stopped. */
  stopOthers(stop: AccountStop): Promise<number>;
  /** Stopped accounts first, then the newest; at most `limit`. */
  list(limit: number): Promise<readonly ListedAccount[]>;
  /** Allows an account and ends its stop; no effect on one that is allowed already. False: there is no such account. */
  allow(accountId: string, end: PauseEnd): Promise<boolean>;
  /** Also finds revoked keys, so the caller must check. */
  keyByHash(hash: string): Promise<ApiKey | null>;
  /** Which of the keys with these hashes are revoked. */
  revokedAmong(hashes: readonly string[]): Promise<readonly string[]>;
  keyUsed(keyId: string, at: Date): Promise<void>;
  /** Keys of an account: active ones first, then revoked ones, each by time; at most `limit`. */
  keys(accountId: string, limit: number): Promise<readonly ApiKey[]>;
  /** What each key of an account has done, by id. */
  keyUse(accountId: string, now: Date): Promise<ReadonlyMap<string, KeyUse>>;
  /**
   * Revokes a key of this account and returns it; a key that was revoked keeps its time. Null: no such key. A given
   * pause of its unfinished actions is written in the same commit, unless one is in force.
   */
  revokeKey(accountId: string, keyId: string, at: Date, more?: Revocation): Promise<ApiKey | null>;
}

/** A person as stored, without the password. */
export interface PersonRow {
  readonly id: string;
  /** As it was given. Unique, ignoring case. */
  readonly email: string;
  /** As `Passwords` makes it; empty: they have no password and sign in by OpenID Connect. */
  readonly passwordHash: string;
  readonly createdAt: Date;
}

/** A session, identified by the hash of the token in its cookie. */
export interface SessionRow {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  readonly personId: string;
  readonly accountId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** SHA-256 of the secret in the browser's storage, hex; null: it sent none. */
  readonly secretHash: string | null;
  /** The network address and the browser that began it, as they were sent; null: not known. */
  readonly client: string | null;
  readonly browser: string | null;
  /** When it was last used, to some minutes; null: not since it began. */
  readonly lastSeenAt: Date | null;
}

/** The owner of a session. */
export interface SessionMember extends Member {
  readonly secretHash: string | null;
  readonly lastSeenAt: Date | null;
  /** They are in more accounts than this one. */
  readonly hasOthers: boolean;
}

/** A person and the account that they log in to, which is the one that they used last. */
export interface Member {
  readonly person: PersonRow;
  readonly accountId: string;
  readonly role: MemberRole;
}

/** A welcome link that can still be used. */
export interface LiveLink {
  readonly personId: string | null;
  readonly accountId: string;
  /** Address of the person whose password it resets; null: it invites the first person. */
  readonly email: string | null;
  /** Their role in the account; null: they are not in it. */
  readonly role: MemberRole | null;
}

/** Which sessions of a person end. */
type SessionChoice = { readonly only: string } | { readonly except: string };

/** A sign-up, which is written in one commit. */
export interface SignUp {
  readonly account: Account;
  readonly key: ApiKey;
  readonly person: PersonRow;
  readonly session: SessionRow;
  readonly audit?: readonly AuditEntry[];
  /** Who allowed the account at sign-up; absent: nobody. */
  readonly allowedBy?: Actor;
  /** Refuse the sign-up once a key of the first account has a hold. */
  readonly untilHold?: boolean;
}

/** Result of using a welcome link: `gone` when it was used, has expired, or the account has a person already. */
type Welcomed = "taken" | "gone" | "email_taken";

export interface PeopleStore {
  /** Finds a person by address, ignoring case. Null: there is no such person, or they have no account. */
  find(email: string): Promise<Member | null>;
  findLabel(accountId: string): Promise<AccountLabel>;
  /** Null: it has no name any more. */
  renameAccount(accountId: string, name: string | null, audit: AuditEntry): Promise<void>;
  /** Whether a person with this address, compared without case, is in the account and may approve there. */
  mayApprove(accountId: string, email: string): Promise<boolean>;
  /** False, and nothing is written: the address is taken, or sign-ups are closed by a hold. */
  signUp(signUp: SignUp): Promise<boolean>;
  /**
   * Begins a session; beyond `SESSIONS_PER_PERSON_MAX` the person's oldest one ends. False, and nothing is written: the
   * password has changed.
   */
  addSession(session: SessionRow, passwordHash: string, audit?: AuditEntry): Promise<boolean>;
  /** The owner of a session; null when it does not exist or has expired. */
  session(hash: string, now: Date): Promise<SessionMember | null>;
  /** Replaces a session's secret, unless the password has changed. */
  renewSessionSecret(hash: string, secretHash: string, passwordHash: string): Promise<void>;
  endSession(hash: string, audit?: AuditEntry): Promise<void>;
  /** The sessions of a person in all their accounts, newest first; at most `SESSIONS_PER_PERSON_MAX`. */
  sessionsOf(personId: string, now: Date): Promise<readonly SessionRow[]>;
  /** Ends sessions of a person: these, or all but `except`. Returns how many. */
  endSessions(personId: string, which: SessionChoice, audit: AuditEntry): Promise<number>;
  /** Notes that a session is in use, and with it the account. */
  sessionSeen(hash: string, at: Date): Promise<void>;
  /** Switches a session to another account of its person. False: they are not in that account, or the session has ended. */
  switchAccount(hash: string, accountId: string, at: Date): Promise<boolean>;
  /**
   * Stores a link and voids earlier ones for the same purpose. False, and nothing is written: it would invite a first
   * person, and the account has one.
   */
  offer(link: WelcomeLink): Promise<boolean>;
  /** A link that can still be used; null for any other. */
  link(hash: string, now: Date): Promise<LiveLink | null>;
  /** Uses a link to create the account's first person; of racing uses one wins. */
  welcome(linkHash: string, person: PersonRow, session: SessionRow, audit?: AuditEntry): Promise<Welcomed>;
  /** Uses a link to reset a password, and ends the person's other sessions. False: it can't be used any more. */
  renewPassword(linkHash: string, passwordHash: string, session: SessionRow, audit?: AuditEntry): Promise<boolean>;
  /**
   * Replaces the password that has this hash. The person's other sessions end and their reset links are void. False,
   * and nothing is written: the password has changed meanwhile.
   */
  changePassword(session: SessionRow, passwordHash: string, nextHash: string, audit?: AuditEntry): Promise<boolean>;
  /** Deletes expired sessions and links; true when there are more. */
  prune(now: Date): Promise<boolean>;
}

/** A seed from which an account's signing secrets are derived after a rotation. */
export interface SigningSeed {
  readonly id: string;
  readonly accountId: string;
  /** Null: for all origins. */
  readonly origin: string | null;
  /** Null, only where `origin` is null: for calls and callbacks. */
  readonly use: SigningUse | null;
  /** Sealed by `Secrets`. */
  readonly sealedSeed: string;
  readonly rotatedAt: Date;
}

/** The newest seed for an origin, as somebody saw it; `id` null: there was none. */
export interface ShownSeed {
  readonly origin: string;
  readonly use: SigningUse;
  readonly id: string | null;
}

/** An origin to which calls or callbacks went. */
export interface OriginUse {
  readonly origin: string;
  readonly lastUsedAt: Date;
}

/** What an account's signing secrets are for. */
export interface UsedOrigins {
  /** One origin of each host name that has an action: at most `KNOWN_ORIGINS_MAX`, by name. */
  readonly calls: readonly OriginUse[];
  /** Those of the newest callbacks. */
  readonly callbacks: readonly OriginUse[];
  /** The newest rotation of each origin and of all, at most `SEEDS_LISTED_MAX`. */
  readonly rotations: readonly Pick<SigningSeed, "origin" | "use" | "rotatedAt">[];
}

export interface SigningStore {
  /** The origins that the account has used or rotated. */
  origins(accountId: string): Promise<UsedOrigins>;
  /**
   * Adds a seed and deletes those of the same origin and use that two newer ones replace. False, and nothing is written: the newest of
   * `seeds` for what was shown is another one by now.
   */
  rotate(seed: SigningSeed, audit?: AuditEntry, shown?: ShownSeed): Promise<boolean>;
  /** The seeds in use for an origin, its own or those of all origins: at most two, the newest first. */
  seeds(accountId: string, origin: string, use: SigningUse): Promise<readonly SigningSeed[]>;
  /**
   * Until when callbacks to an origin are also signed with the secret of calls, because it received some before
   * callbacks had a secret of their own; null: never.
   */
  callbackOverlap(accountId: string, origin: string): Promise<Date | null>;
}

/** A sealed text and its column and row. */
export interface SealedText {
  readonly place: SealedPlace;
  readonly sealed: string;
}

/** All sealed texts of the store, for a change of the master key. */
export interface SealedStore {
  /** Texts that don't begin with this key id, in a fixed order after `after`; null: from the first. */
  find(keyId: string, after: SealedPlace | null, limit: number): Promise<readonly SealedText[]>;
  /** Replaces texts in one commit; one that has changed meanwhile stays as it is. */
  replace(replacements: readonly (SealedText & { readonly by: string })[]): Promise<void>;
}

/** A one-time link that the operator issues, identified by the hash of its token. */
export interface WelcomeLink {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  /** Null: its user becomes the account's first person. Otherwise it resets this person's password. */
  readonly personId: string | null;
  readonly accountId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** A listed host, normalized. */
export interface ListedHost {
  readonly accountId: string;
  readonly host: string;
  readonly createdAt: Date;
}

/** Calls and callbacks have separate secrets, so that no callback passes for a call. */
export const SIGNING_USES = ["calls", "callbacks"] as const;

/** The hosts to which keys with a hold or a limit may send callbacks, in alphabetical order, at most `CALLBACK_HOSTS_MAX`. */
export type CallbackHostStore = SettingsStore<ListedHost>;

export type SigningUse = (typeof SIGNING_USES)[number];

/** The place of an encrypted text. It can be decrypted only for the same place. */
export interface SealedPlace {
  readonly table: string;
  readonly row: string;
  readonly column: string;
}

/**
 * An address without case, as a map key. Only of ASCII, as our addresses are: identity providers allow more, and the Kelvin sign
 * in lower case is a `k`.
 */
export function emailKey(email: string): string {
  return email.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * Whether its maker may still manage the account. `managers`: the ids of those who may (`TeamStore.managers`). A person without
 * an id had left before ids were stored. Of other makers without an id nothing is known, so they pass.
 */
export function isByManager({ createdBy, createdById }: Made, managers: ReadonlySet<string>): boolean {
  if (createdById !== null) return managers.has(createdById);
  return createdBy?.startsWith("user:") !== true;
}

/** The live keys whose makers may no longer manage the account: people who left or were lowered, owner keys that have ended. */
export function keysOfFormer<Key extends Made & Pick<ApiKey, "revokedAt" | "expiresAt">>(
  keys: readonly Key[],
  managers: ReadonlySet<string>,
  now: Date,
): readonly Key[] {
  return keys.filter((key) => !hasEnded(key, now) && !isByManager(key, managers));
}

/** Whether a key works no more. */
export function hasEnded({ revokedAt, expiresAt }: Pick<ApiKey, "revokedAt" | "expiresAt">, now: Date): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= now);
}
