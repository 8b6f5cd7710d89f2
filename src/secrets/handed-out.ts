import { createHash } from "node:crypto";
import type { Secrets } from "../ports/secrets.ts";
import { newApiKey } from "./api-keys.ts";

const TOKEN_BYTES = 32;

/** What is handed out once and known by its hash from then on: it hangs on no master key. */
export type HandedOut = Pick<Secrets, "newApiKey" | "newToken" | "hash">;

/** From the system's generator. */
export function createHandedOut(random: (count: number) => Uint8Array): HandedOut {
  return {
    newApiKey: () => newApiKey(random),
    newToken: () => Buffer.from(random(TOKEN_BYTES)).toString("hex"),
    hash: (text) => createHash("sha256").update(text).digest("hex"),
  };
}
