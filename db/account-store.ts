import type { AuditEntry } from "../src/audit/audit.ts";
import type { Pause, PauseEnd } from "../src/pauses/pause.ts";
import type { Hold, KeyScope, Role, Actor } from "../src/accounts/roles.ts";
import type { SigningUse } from "../src/crypto/signature.ts";
import type { SealedPlace } from "../src/crypto/types.ts";

export interface Account {
  readonly id: string;
  /** Sealed by `Secrets`; signing secrets are derived from it. */
  readonly sealedRootSecret: string;
  readonly createdAt: Date;
}

/** An account as the operator of the service sees it. */
export interface ListedAccount {
  readonly id: string;
  /** Of its first person; null: it has none. */
  readonly email: string | null;
  readonly createdAt: Date;
  /** It is the one that the first start made. */
  readonly isFirst: boolean;
  /** Its keys do nothing, and nothing of it is sent, until it is allowed. */
  readonly isStopped: boolean;
  readonly allowedAt: Date | null;
}

/** The stop of the accounts that nobody has allowed. */
export interface AccountStop {
  readonly at: Date;
  /** Shown with everything of theirs that waits for that. */
  readonly reason: string;
}

/** What is written along with a key that has a hold. */
export interface HoldStop extends AccountStop {
  /** Written where the key is the first that has one. */
  readonly audit: AuditEntry;
}

/** An API key as it is kept: never the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope: KeyScope;
  /** Id of the key whose actions were handed over to it. */
  readonly replaces: string | null;
  /** SHA-256 of the key, hex. */
  readonly hash: string;
  readonly last4: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

/** What is written along with the end of a key. */
export interface Revocation {
  readonly audit?: AuditEntry;
  readonly pause?: { readonly pause: Pause; readonly audit: AuditEntry };
}

/** What the very first account begins with beside its keys. */
export interface FirstAccountExtras {
  /** Makes the account's first person. */
  readonly link: WelcomeLink;
  /** Facts of the store, by name. */
  readonly facts: Readonly<Record<string, string>>;
  /** What the audit log tells of it. */
  readonly audit: readonly AuditEntry[];
}

export interface AccountStore {
  /** The account that the first start made; null before it. */
  first(): Promise<Account | null>;
  find(accountId: string): Promise<Account | null>;
  /** Account, keys and extras in one commit: a crash leaves all of them or none. */
  create(account: Account, keys: readonly ApiKey[], extras?: FirstAccountExtras): Promise<void>;
  /** `stop`: in the same commit every account is stopped that nobody has allowed. */
  addKey(key: ApiKey, audit?: AuditEntry, stop?: HoldStop): Promise<void>;
  /**
   * The keys whose actions were handed over to one: the key that it replaces, the one that that replaced, and so on, at most
   * `REPLACED_KEYS_MAX`.
   */
  replacedBy(keyId: string): Promise<readonly string[]>;
  /** One key of an account, revoked or not. */
  findKey(accountId: string, keyId: string): Promise<ApiKey | null>;
  /** Whether the first account has, or had, a key with a hold. */
  hasHold(): Promise<boolean>;
  /** Stops every account but the first that nobody has allowed, and tells how many were not stopped before. */
  stopOthers(stop: AccountStop): Promise<number>;
  /** Those that are stopped first, then the newest; at most so many. */
  list(limit: number): Promise<readonly ListedAccount[]>;
  /** Allows an account, and ends its stop. One that is allowed already stays as it is. False: there is no such account. */
  allow(accountId: string, end: PauseEnd): Promise<boolean>;
  /** Revoked keys too; the caller judges. */
  keyByHash(hash: string): Promise<ApiKey | null>;
  keyUsed(keyId: string, at: Date): Promise<void>;
  /** Keys of an account: the live ones first, then the revoked, each in the order of time; at most so many. */
  keys(accountId: string, limit: number): Promise<readonly ApiKey[]>;
  /**
   * Revokes a key of this account, for good, and returns it; one that was revoked keeps its time. Null: no such key. What it
   * left unfinished is paused in the same commit where a pause is given, unless it is paused already.
   */
  revokeKey(accountId: string, keyId: string, at: Date, more?: Revocation): Promise<ApiKey | null>;
}

/** Somebody who can log in, as they are kept: never the password. */
export interface PersonRow {
  readonly id: string;
  /** As it was given; no other person has it in any case. */
  readonly email: string;
  /** As `Passwords` makes it. */
  readonly passwordHash: string;
  readonly createdAt: Date;
}

/** A session, known by the hash of the token that its cookie holds. */
export interface SessionRow {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  readonly personId: string;
  readonly accountId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** SHA-256 of the secret that the browser's storage holds, hex; null: it has told us none. */
  readonly secretHash: string | null;
}

/** Who has a session. */
export interface SessionMember extends Member {
  readonly secretHash: string | null;
}

/** A person and the account that they log in to: the one that they have been in for the longest time. */
export interface Member {
  readonly person: PersonRow;
  readonly accountId: string;
}

/** What a link that can still be taken is for. */
export interface LiveLink {
  readonly personId: string | null;
  readonly accountId: string;
  /** Whose password it renews; null: nobody's yet. */
  readonly email: string | null;
}

/** A sign-up: everything of it in one commit. */
export interface SignUp {
  readonly account: Account;
  readonly key: ApiKey;
  readonly person: PersonRow;
  readonly session: SessionRow;
  readonly audit?: readonly AuditEntry[];
  /** Who has allowed the account from its beginning; left out: nobody has. */
  readonly allowedBy?: Actor;
  /** None is made once a key of the first account has a hold. */
  readonly endsWithHold?: boolean;
}

/** What became of a welcome: `gone` when the link was taken, ran out, or the account has a person by now. */
type Welcomed = "taken" | "gone" | "email_taken";

export interface PeopleStore {
  /** By address, in any case; null: nobody has it, or who has it is in no account. */
  find(email: string): Promise<Member | null>;
  /** The address of the account's first person; null while it has none. */
  emailOf(accountId: string): Promise<string | null>;
  /** Whether somebody with this address, in any case, is in the account. */
  isIn(accountId: string, email: string): Promise<boolean>;
  /** False, and nothing is written: somebody has the address, or sign-ups have ended with the first hold. */
  signUp(signUp: SignUp): Promise<boolean>;
  /**
   * Begins a session; beyond `SESSIONS_PER_PERSON_MAX` it ends the person's oldest. False, and nothing is written: the
   * person has another password by now.
   */
  addSession(session: SessionRow, passwordHash: string, audit?: AuditEntry): Promise<boolean>;
  /** Who has the session; null when there is none, or it ran out by now. */
  session(hash: string, now: Date): Promise<SessionMember | null>;
  /** Gives a session another secret; nothing is written where the person has another password by now. */
  renewSessionSecret(hash: string, secretHash: string, passwordHash: string): Promise<void>;
  endSession(hash: string, audit?: AuditEntry): Promise<void>;
  /**
   * Hands out a link; those before it of the same person, or to become the account's first, are void. False, and nothing
   * is written: it would make a first person, and the account has one.
   */
  offer(link: WelcomeLink): Promise<boolean>;
  /** A link that can still be taken; null for any other. */
  link(hash: string, now: Date): Promise<LiveLink | null>;
  /** Takes a link that makes the account's first person, once, whoever races for it. */
  welcome(linkHash: string, person: PersonRow, session: SessionRow, audit?: AuditEntry): Promise<Welcomed>;
  /** Takes a link that renews a password, and ends the person's other sessions. False: it can't be taken any more. */
  renewPassword(linkHash: string, passwordHash: string, session: SessionRow, audit?: AuditEntry): Promise<boolean>;
  /**
   * Gives the session's person another password in place of the one with this hash; every other session of theirs ends, and
   * no link renews it any more. False, and nothing is written: they have another one by now.
   */
  changePassword(session: SessionRow, passwordHash: string, nextHash: string, audit?: AuditEntry): Promise<boolean>;
  /** Forgets sessions and links that ran out; true when there are more. */
  prune(now: Date): Promise<boolean>;
}

/** What the signing secrets of an account are derived from since a rotation (decisions 6). */
export interface SigningSeed {
  readonly id: string;
  readonly accountId: string;
  /** Null: the secrets of all origins. */
  readonly origin: string | null;
  /** Null, of all origins only: the secrets of calls and of callbacks. */
  readonly use: SigningUse | null;
  /** Sealed by `Secrets`. */
  readonly sealedSeed: string;
  readonly rotatedAt: Date;
}

export interface SigningStore {
  /** Adds a seed and forgets those of the same place that two newer ones have put out of use. */
  rotate(seed: SigningSeed, audit?: AuditEntry): Promise<void>;
  /** The two seeds at most that an origin's secrets come from now, its own or those of all origins: the newest first. */
  seeds(accountId: string, origin: string, use: SigningUse): Promise<readonly SigningSeed[]>;
  /**
   * Until when the secret of calls signs callbacks to an origin too, because it got some while that was the only secret;
   * null: it never did.
   */
  callbackOverlap(accountId: string, origin: string): Promise<Date | null>;
}

/** A sealed text and where it stands. */
export interface SealedText {
  readonly place: SealedPlace;
  readonly sealed: string;
}

/** Every sealed text of the store, for a change of the key that they are sealed under; no other use looks at them so. */
export interface SealedStore {
  /** Texts that do not begin with this key id, in a fixed order after `after`; null: from the first one. */
  find(keyId: string, after: SealedPlace | null, limit: number): Promise<readonly SealedText[]>;
  /** Puts another text in the place of each, in one commit; one that has changed meanwhile is left as it is. */
  replace(replacements: readonly (SealedText & { readonly by: string })[]): Promise<void>;
}

/** A one-time link that is handed out on the server's machine, known by the hash of its token. */
export interface WelcomeLink {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  /** Null: whoever takes it becomes the account's first person. Else it gives this person a new password. */
  readonly personId: string | null;
  readonly accountId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}
