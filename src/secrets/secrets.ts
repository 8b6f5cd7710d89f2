import type { Secrets } from "../ports/secrets.ts";
import { createHandedOut } from "./handed-out.ts";
import { KEY_BYTES, keyIdOf, subkey } from "./master.ts";
import { open, seal } from "./seal.ts";
import { sign, signingSecret } from "./signature.ts";
import {
  approvalToken,
  deviceToken,
  isOfHash,
  isQuestionToken,
  questionToken,
  readApprovalToken,
  readDeviceToken,
  readReceiptToken,
  receiptToken,
} from "./tokens.ts";

/**
 * Everything that is made or checked with a key, from one master key of 32 bytes and the system's generator. What people
 * were sent hangs on `linkKey`, which outlives a change of the master key. Throws when a key has another length.
 */
export function createSecrets(
  masterKey: Uint8Array,
  random: (count: number) => Uint8Array,
  linkKey: Uint8Array = linkKeyOf(masterKey),
): Secrets {
  const sealKey = { bytes: subkey(masterKey, "seal"), id: keyIdOf(masterKey) };
  const questionKey = subkey(masterKey, "question");
  const receiptKey = subkey(linkKey, "receipt");
  const approvalKey = subkey(linkKey, "approval");
  const deviceKey = subkey(linkKey, "device");
  return {
    ...createHandedOut(random),
    newRootSecret: () => random(KEY_BYTES),
    seal: (plain, place) => seal(sealKey, plain, place, random),
    open: (sealed, place) => open(sealKey, sealed, place),
    signingSecret,
    sign: (signing, message) => signing.map((secret) => sign(secret, message)).join(" "),
    deviceToken: (device) => deviceToken(deviceKey, device),
    readDeviceToken: (token) => readDeviceToken(deviceKey, token),
    questionToken: (about) => questionToken(questionKey, about),
    isQuestionToken: (about, token) => isQuestionToken(questionKey, about, token),
    receiptToken: (actionId) => receiptToken(receiptKey, actionId),
    readReceiptToken: (token) => readReceiptToken(receiptKey, token),
    approvalToken: (link) => approvalToken(approvalKey, link),
    readApprovalToken,
    isOfHash,
  };
}

/** The key of links as long as the master key is the first one; afterwards the store keeps it, sealed. */
export function linkKeyOf(masterKey: Uint8Array): Buffer {
  return subkey(masterKey, "links");
}
