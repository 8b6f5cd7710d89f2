import type { Actor } from "./actor.ts";
import { DomainError } from "./errors.ts";
import {
  type Hold,
  type KeyScope,
  mayApproveWhenAsked,
  mayDo,
  type Permission,
  type Role,
  rolesThatMay,
} from "./roles.ts";

/** Whoever stands at a door: a key or a person, and through it an account. */
export interface Caller {
  readonly accountId: string;
  /** Null: a person, who has no key. */
  readonly keyId: string | null;
  /** What people call it: the name of the key, or the person's address. */
  readonly keyName: string;
  /** Of a person only. */
  readonly personId?: string;
  readonly role: Role;
  readonly hold: Hold;
  /** Of an agent's key; left out: its own actions alone. */
  readonly scope?: KeyScope;
  /** Keys whose actions were handed over to the caller's, which replaced them. */
  readonly replaced?: ReadonlySet<string>;
  /** As which the caller's decisions are written down. */
  readonly actor: Actor;
  /** The network address that the request came from, for the audit log. */
  readonly client?: string;
  /** It came in over MCP. */
  readonly isAgentCall?: boolean;
  /**
   * Set for the one decision that the caller's MCP client has put to its person: it shows that the client asked, not that
   * the person answered (hostile 8).
   */
  readonly via?: "elicitation";
  /** Aborted when the key is revoked, or the session ended, while its caller is still here; one that has none stays. */
  readonly revoked?: AbortSignal;
}

/** Who shares the streams, sessions and waits of the account: a key, or a person on the pages. */
export function holderOf({ keyId, personId }: Caller): string {
  return keyId ?? personId ?? "";
}

/** The same refusal whatever is missing or wrong, so that it tells nothing about keys (hostile 1). */
export function unauthorized(): DomainError {
  return new DomainError(
    "unauthorized",
    "Send an API key as `Authorization: Bearer <key>`. The first start of Outgate prints one; an owner key makes more.",
  );
}

/** Why nothing that an account wants sent is sent, and what to do about it. */
export function accountStopped(accountId: string): DomainError {
  return new DomainError(
    "forbidden",
    `Account ${accountId} was signed up before sign-ups closed here, and is stopped: its keys are refused, and nothing of ` +
      "it is sent. An owner of the first account of this service allows it: on the page Settings, Accounts, or with " +
      `\`outgate accounts allow ${accountId}\`.`,
  );
}

/**
 * Lets the caller pass or throws `forbidden`; `unauthorized` when the key was revoked since it came in, for a body may
 * take its time to arrive. Asked before anything is looked up, so that a refusal tells nothing about
 * what exists (hostile 1).
 */
export function authorize(caller: Caller, permission: Permission): void {
  if (caller.revoked?.aborted === true) throw unauthorized();
  if (mayDo(caller.role, permission)) return;
  if (permission === "approve" && caller.via === "elicitation" && mayApproveWhenAsked(caller.role)) return;
  throw new DomainError(
    "forbidden",
    `A key with the role ${caller.role} may not do this; it needs the role ${rolesThatMay(permission).join(" or ")}.`,
  );
}
