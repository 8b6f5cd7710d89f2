import type { Secrets } from "../ports/secrets.ts";
import { createHandedOut } from "./handed-out.ts";
import { fingerprint, KEY_BYTES, subkey } from "./master.ts";
import { open, seal } from "./seal.ts";
import { sign, signingSecret } from "./signature.ts";
import { approvalToken, isOfHash, readApprovalToken, readReceiptToken, receiptToken } from "./tokens.ts";

/**
 * Everything that is made or checked with a key, from one master key of 32 bytes and the system's generator.
 * Throws when the master key has another length.
 */
export function createSecrets(masterKey: Uint8Array, random: (count: number) => Uint8Array): Secrets {
  const sealKey = { bytes: subkey(masterKey, "seal"), id: fingerprint(masterKey).slice(0, 8) };
  const receiptKey = subkey(masterKey, "receipt");
  const approvalKey = subkey(masterKey, "approval");
  return {
    ...createHandedOut(random),
    newRootSecret: () => random(KEY_BYTES),
    seal: (plain, place) => seal(sealKey, plain, place, random),
    open: (sealed, place) => open(sealKey, sealed, place),
    signingSecret,
    sign: (signing, message) => signing.map((secret) => sign(secret, message)).join(" "),
    receiptToken: (actionId) => receiptToken(receiptKey, actionId),
    readReceiptToken: (token) => readReceiptToken(receiptKey, token),
    approvalToken: (link) => approvalToken(approvalKey, link),
    readApprovalToken,
    isOfHash,
  };
}
