import { createHmac, timingSafeEqual } from "node:crypto";
import { ACTION_ID } from "../domain/id.ts";

const ID_PREFIX = "act_";
const MAC_BYTES = 16;
const MAC_CHARS = 2 * MAC_BYTES;

/**
 * The token of an action's receipt: the id's own part and 128 bits of HMAC-SHA-256 over the id. It names its row, so it
 * needs no index. Hex, because chats cut `-` and `_` off the end of links.
 */
export function receiptToken(key: Uint8Array, actionId: string): string {
  return actionId.slice(ID_PREFIX.length) + macOf(key, actionId).toString("hex");
}

/** The id of the action whose receipt the token opens, or null. Constant in time for texts of one length. */
export function readReceiptToken(key: Uint8Array, token: string): string | null {
  const actionId = ID_PREFIX + token.slice(0, -MAC_CHARS);
  if (!ACTION_ID.test(actionId)) return null;
  // Compared as text, so that no second spelling of a token opens the page.
  const given = Buffer.from(token.slice(-MAC_CHARS));
  const right = Buffer.from(macOf(key, actionId).toString("hex"));
  return given.length === right.length && timingSafeEqual(given, right) ? actionId : null;
}

function macOf(key: Uint8Array, actionId: string): Buffer {
  return createHmac("sha256", key).update(actionId).digest().subarray(0, MAC_BYTES);
}
