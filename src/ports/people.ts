import type { Actor } from "../domain/actor.ts";
import type { AuditEntry } from "../domain/audit.ts";
import type { Account, ApiKey } from "./accounts.ts";
import type { WelcomeLink } from "./welcome-link.ts";

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
export type Welcomed = "taken" | "gone" | "email_taken";

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
