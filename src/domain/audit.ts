import { type Actor, SYSTEM } from "./actor.ts";
import type { Caller } from "./caller.ts";

/** What the audit log tells of. A name is never given another meaning: exports keep it for years. */
export const AUDIT_KINDS = [
  "signed_up",
  "signed_in",
  "sign_in_failed",
  "sign_in_throttled",
  "signed_out",
  "password_changed",
  "key_created",
  "key_revoked",
  "revealed",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "paused",
  "resumed",
  "signing_secret_rotated",
  "callback_hosts_changed",
  "signups_closed",
  "account_allowed",
] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

/** Who did it. `anonymous`: somebody who was not let in. */
export type AuditActor = Actor | "anonymous";

/** How it came in. */
export type AuditWay = "api" | "page" | "mail" | "mcp" | "elicitation" | "system";

/** More about an entry, in a few members of its kind. Never a secret. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** Something that somebody did to an account. It is written once and never changed. */
export interface AuditEntry {
  readonly at: Date;
  readonly accountId: string;
  readonly actor: AuditActor;
  readonly kind: AuditKind;
  /** What it was done to: the id of an action, key or pause, an origin, an address; empty: the account. */
  readonly subject: string;
  /** The network address that it came from; empty: from the service itself or its machine. */
  readonly client: string;
  readonly detail: AuditDetail;
}

/** What an entry says beside who did it, when and from where. */
export interface Audited {
  readonly kind: AuditKind;
  readonly subject: string;
  readonly detail?: AuditDetail;
}

/** The entry of something that a caller does now. */
export function auditOf(caller: Caller, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  const { accountId, actor, client = "" } = caller;
  return { at, accountId, actor, kind, subject, client, detail: { via: wayOf(caller), ...detail } };
}

/** The entry of something that the service does by itself, or an operator on its machine. */
export function auditOfSystem(accountId: string, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  return { at, accountId, actor: SYSTEM, kind, subject, client: "", detail: { via: "system", ...detail } };
}

function wayOf({ actor, via, isAgentCall }: Pick<Caller, "actor" | "via" | "isAgentCall">): AuditWay {
  if (via !== undefined) return via;
  if (isAgentCall === true) return "mcp";
  if (actor === SYSTEM) return "system";
  if (actor.startsWith("user:")) return "page";
  return actor.startsWith("email:") ? "mail" : "api";
}
