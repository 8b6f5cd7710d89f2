import { TARGET_MESSAGE_BODY_CHARS_MAX, TARGET_MESSAGE_CHARS_MAX } from "../core/limits.ts";
import { jsonIn } from "../core/json.ts";

/** The members in which APIs say what went wrong, the usual ones first (Stripe, GitHub, RFC 9457, OAuth). */
const MEMBERS = [
  "message",
  "detail",
  "error_description",
  "error",
  "errors",
  "description",
  "reason",
  "title",
] as const;

/** Enough for an error in a list in an error in the answer. */
const DEPTH_MAX = 4;

/**
 * What a target says about its failure, in its own words and on one line; null: nothing that reads like a message. `json`: a
 * stored response body, masked for the reader of the message. Not in `service.ts`, since the command line loads this file.
 */
export function targetMessage(json: string | null): string | null {
  if (json === null || json.length > TARGET_MESSAGE_BODY_CHARS_MAX) return null;
  const text = messageIn(jsonIn(json), DEPTH_MAX);
  if (text === null) return null;
  return text.length > TARGET_MESSAGE_CHARS_MAX ? `${text.slice(0, TARGET_MESSAGE_CHARS_MAX - 1)}…` : text;
}

function messageIn(value: unknown, depth: number): string | null {
  if (typeof value === "string") return singleLine(value);
  if (depth === 0) return null;
  if (Array.isArray(value)) return messageIn(value[0], depth - 1);
  if (typeof value !== "object" || value === null) return null;
  const members = new Map<string, unknown>(Object.entries(value));
  if (members.get("encoding") === "base64") return null;
  for (const name of MEMBERS) {
    const message = messageIn(members.get(name), depth - 1);
    if (message !== null) return message;
  }
  return null;
}

/** A text as a line; null: it is empty, or a page of HTML. */
function singleLine(text: string): string | null {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" || line.startsWith("<") ? null : line;
}
