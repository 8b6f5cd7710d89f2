import type { AuditEntry } from "./audit.ts";
import type { Actor, Made, MemberRole } from "./roles.ts";
import type { AccountLabel, Member, PersonRow, SessionRow } from "./account-store.ts";

/** A person as the owners of their account see them. */
export interface TeamMember {
  readonly personId: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly joinedAt: Date;
  /** When they last used this account, to a few minutes; null: not since this is recorded. */
  readonly lastSeenAt: Date | null;
}

/** An account of a person. */
export interface Membership extends AccountLabel {
  readonly accountId: string;
  readonly role: MemberRole;
}

/** An invitation that was not accepted yet. */
export interface Invitation {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Id of the person or key that created it; null: not known. */
  readonly createdById: string | null;
  readonly expiresAt: Date;
}

/** An invitation with the SHA-256 of the token in its link, hex. */
export interface StoredInvitation extends Invitation {
  readonly hash: string;
}

/** The outbox row that mails an invitation. The link is made when the mail is sent. */
interface InvitationMail {
  readonly id: string;
  readonly host: string;
}

/** The result of changing a member. Not done: nobody would own the account, there is no such member, or `by` owns the account no more. */
export type MemberChange = "done" | "last_owner" | "gone" | "not_manager";

/** `member`: the address is in the account already. `full`: it has as many invitations, or people, as it may have. */
export type Invited = "done" | "member" | "full";

/** Somebody who accepts an invitation. */
export interface Joining {
  readonly invitation: StoredInvitation;
  /** A new person, or the one that the address belongs to. */
  readonly person: PersonRow;
  readonly isNew: boolean;
  /** The session that they continue with: a new one, or the hash of their present one. */
  readonly session: SessionRow | string;
  readonly identity?: Identity;
  readonly at: Date;
  readonly audit: readonly AuditEntry[];
}

/** Identifies a person at an OpenID Connect provider. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

/** What is written with a session that an identity begins. */
interface SignInMore {
  readonly audit: readonly AuditEntry[];
  /** Deletes the person's password and ends their other sessions. */
  readonly dropsPassword: boolean;
}

/** The people of accounts and their invitations. Of racing changes that would leave no owner, one is refused. */
export interface TeamStore {
  /** In the order in which they joined; at most `limit`. */
  members(accountId: string, limit: number): Promise<readonly TeamMember[]>;
  member(accountId: string, personId: string): Promise<TeamMember | null>;
  /**
   * The ids of all who may manage the account: its owners, its live owner keys, and the keys that these replaced, so that
   * replacing an owner key doesn't affect what it made.
   */
  managers(accountId: string, now: Date): Promise<ReadonlySet<string>>;
  /** The accounts of a person, the one used last first; at most `limit`. */
  accountsOf(personId: string, limit: number): Promise<readonly Membership[]>;
  /** `by`: who must still manage the account; left out: that doesn't matter. */
  changeRole(
    accountId: string,
    personId: string,
    role: MemberRole,
    audit: AuditEntry,
    by?: Made,
  ): Promise<MemberChange>;
  /** Removes a person, and ends their sessions in the account. A person in no account is deleted. `by`: as above. */
  remove(accountId: string, personId: string, audit: AuditEntry, by?: Made): Promise<MemberChange>;
  /** Stores an invitation. It replaces an open one of the same address, whose link then no longer works. */
  invite(invitation: StoredInvitation, mail: InvitationMail | null, audit: AuditEntry): Promise<Invited>;
  /** The invitations that have not ended, newest first; at most `limit`. Whether one is void depends on `managers`. */
  invitations(accountId: string, now: Date, limit: number): Promise<readonly Invitation[]>;
  /** False: there is no such invitation. */
  withdraw(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  /** An invitation that has not ended, by the hash of its token or by id; null: there is none. */
  invitation(by: { readonly hash: string } | { readonly id: string }, now: Date): Promise<StoredInvitation | null>;
  /** The open invitations of an address, of any account, newest first; at most `limit`. */
  invitationsOf(email: string, now: Date, limit: number): Promise<readonly StoredInvitation[]>;
  /**
   * Uses an invitation. False, and nothing is written: it was used or withdrawn, its maker may no longer manage the account,
   * the account is full, or the person has changed.
   */
  join(joining: Joining): Promise<boolean>;
  /** The person with this identity and their last-used account. Null: nobody has it, or they have no account. */
  identified(identity: Identity): Promise<Member | null>;
  /**
   * Begins a session by an identity, and stores the identity for the person. False, and no session begins: they have left the
   * account, they have another identity of this issuer, or it is somebody else's.
   */
  signIn(session: SessionRow, identity: Identity, more: SignInMore): Promise<boolean>;
  /** Deletes expired invitations and mails of invitations that are gone; true when there are more. */
  prune(now: Date): Promise<boolean>;
}

export function invitationLink(baseUrl: string, token: string): string {
  return `${baseUrl}/join/${token}`;
}
