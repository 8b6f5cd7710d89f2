import { type Hold, isHeld, mayDo, type Role, type Actor } from "../accounts/roles.ts";

/** Role and hold of an action's creator at the time of creation. A person has the hold `none`. */
export interface Creator {
  readonly role: Role;
  readonly hold: Hold;
}

interface CreatedAction {
  readonly creator: Creator;
  readonly method: string;
}

/** Whether the key's hold requires approval, whatever the create asked for. */
export function isHeldByKey({ creator, method }: CreatedAction): boolean {
  return isHeld(creator.hold, method);
}

/**
 * Whether the role may approve this action, given that it may approve at all or that its client has asked a person. A hold
 * restricts agents, so no agent's client can answer for what a hold holds.
 */
export function mayApproveIt(role: Role, action: CreatedAction): boolean {
  return mayDo(role, "approve") || !isHeldByKey(action);
}

/** Whether callbacks go only to hosts that an owner has listed for the account. */
export function needsListedCallback({ hold }: Creator): boolean {
  return hold !== "none";
}

/**
 * Whether mail may go only to `APPROVERS` and to people of the account. Without APPROVERS, an owner key that has no hold may
 * name anyone: it could send the call without approval anyway.
 */
export function needsKnownRecipient({ role, hold }: Creator, approvers: readonly string[]): boolean {
  return approvers.length > 0 || role !== "owner" || hold !== "none";
}

/** Whether a list of addresses and `@domain`s contains an address, ignoring case. */
export function isNamedIn(approvers: readonly string[], email: string): boolean {
  const address = email.toLowerCase();
  return approvers.some((approver) => {
    const entry = approver.toLowerCase();
    if (!entry.startsWith("@")) return address === entry;
    // Old mail servers relay `ann%other.example@ours.example` and `other!ann@…` to the other host.
    return !/[%!]/.test(address) && address.slice(address.lastIndexOf("@")) === entry;
  });
}

/** A key with actions that await approval. */
export interface Requester {
  /** Empty: a person, or no key was stored. */
  readonly keyId: string;
  /** As its oldest held action names it. */
  readonly createdBy: Actor;
  /** Up to `COUNTED_MAX`. */
  readonly count: number;
}
