import type { Actor } from "./actor.ts";
import { DomainError } from "./errors.ts";
import { type Hold, mayDo, type Permission, type Role, rolesThatMay } from "./roles.ts";

/** Whoever stands at a door: a key, and through it an account. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly role: Role;
  readonly hold: Hold;
  /** As which the caller's decisions are written down. */
  readonly actor: Actor;
}

/**
 * Lets the caller pass or throws `forbidden`. Asked before anything is looked up, so that a refusal tells nothing about
 * what exists (hostile 1).
 */
export function authorize(caller: Caller, permission: Permission): void {
  if (mayDo(caller.role, permission)) return;
  throw new DomainError(
    "forbidden",
    `A key with the role ${caller.role} may not do this; it needs the role ${rolesThatMay(permission).join(" or ")}.`,
  );
}
