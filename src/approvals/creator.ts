import { type Hold, isHeld, mayDo, type Role, type Actor } from "../accounts/roles.ts";

/** The rules that an action was created under: role and hold of its key at that moment. A person has no hold. */
export interface Creator {
  readonly role: Role;
  readonly hold: Hold;
}

interface Created {
  readonly creator: Creator;
  readonly method: string;
}

/** Whether the key's hold, and not the wish of the create alone, puts the action before a person. */
export function isHeldByKey({ creator, method }: Created): boolean {
  return isHeld(creator.hold, method);
}

/**
 * Whether a role that may approve, or whose client has asked a person, may approve this one. A hold is set against the
 * agent that has the key: its own client is no witness there, whichever of the account's agents brings the answer.
 */
export function mayApproveIt(role: Role, action: Created): boolean {
  return mayDo(role, "approve") || !isHeldByKey(action);
}

/** Whether callbacks go only to hosts that an owner has listed for the account. */
export function needsListedCallback({ hold }: Creator): boolean {
  return hold !== "none";
}

/**
 * Whether mail goes only to `APPROVERS` and to people of the account who may approve. An owner key without a hold may
 * name anyone while no approvers are set: nobody approves for it what they could not send themselves.
 */
export function needsKnownRecipient({ role, hold }: Creator, approvers: readonly string[]): boolean {
  return approvers.length > 0 || role !== "owner" || hold !== "none";
}

/** Whether a list of addresses and `@domain`s names an address, in any case. */
export function isNamedIn(approvers: readonly string[], email: string): boolean {
  const address = email.toLowerCase();
  return approvers.some((approver) => {
    const one = approver.toLowerCase();
    if (!one.startsWith("@")) return address === one;
    // An old mail server sends `ann%other.example@ours.example` and `other!ann@…` on to the other one.
    return !/[%!]/.test(address) && address.slice(address.lastIndexOf("@")) === one;
  });
}

/** A key of which something awaits approval. */
export interface Requester {
  /** Empty: no key, or none was kept. */
  readonly keyId: string;
  /** As its oldest request names it. */
  readonly createdBy: Actor;
  /** Up to `COUNTED_MAX`. */
  readonly count: number;
}
