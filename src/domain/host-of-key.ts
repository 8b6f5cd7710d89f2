import type { Action } from "./action.ts";

/** A host that a key calls. */
export type HostOfKey = Pick<Action, "keyId" | "hostname">;

/** Both in one text. */
export function hostOfKey({ keyId, hostname }: HostOfKey): string {
  return JSON.stringify([keyId, hostname]);
}
