import { maskFormats } from "./mask-formats.ts";
import { HAS_MEMBERS, maskMembers } from "./mask-json.ts";
import { maskPairs, mayHoldPairs } from "./mask-pairs.ts";
import { MASK, Masking, type Tally } from "./mask-value.ts";
import { isVisibleHeader, secretKind } from "./mask-words.ts";
import type { Viewer } from "../accounts/roles.ts";

/**
 * What is shown in place of secrets to whoever may see an action but not use what it carries. Two rules. What has the
 * **format** of a secret is hidden from everybody. What only has its **name** is hidden from the public; from whoever
 * decides, only where it looks drawn at random: they have to see what they approve. Pure; never throws; linear in the
 * text; masking twice is masking once. What is stored and sent is never touched. A `tally` counts what was hidden.
 */

/** Texts inside texts: JSON in a string, a URL in a parameter. What lies deeper is not read by its names. */
const NESTED_TEXTS_MAX = 4;

const NONE = (): Tally => ({ hidden: 0 });

/** The headers, each value masked by its own name. */
export function maskHeaders(
  headers: Readonly<Record<string, string>>,
  viewer: Viewer,
  tally: Tally = NONE(),
): Readonly<Record<string, string>> {
  const masking = new Masking(viewer, tally);
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskHeader(name, value, masking)]));
}

/** Between the parts of a header: of a cookie, of credentials, of a list. */
const HEADER_PART = /[^\s;,"]+/g;

function maskHeader(name: string, value: string, masking: Masking): string {
  if (isVisibleHeader(name)) return maskNested(value, masking, 0);
  const kind = secretKind(name) ?? "header";
  if (masking.viewer === "public") return value === "" ? value : masking.hide(value, kind);
  return maskNested(value, masking, 0).replace(HEADER_PART, (part) => {
    // `theme=dark` of a cookie, and not the padding of base64.
    const start = /^[^=]*=(?!=|$)/.exec(part)?.[0].length ?? 0;
    const secret = part.slice(start);
    return masking.hidesNamed(secret) ? part.slice(0, start) + masking.hide(secret, kind) : part;
  });
}

/** A JSON text, masked: JSON again, with everything that is no secret as it was written. */
export function maskJsonText(json: string, viewer: Viewer, tally: Tally = NONE()): string {
  const masking = new Masking(viewer, tally);
  return maskMembers(json, masking, (text) => maskNested(text, masking, 1));
}

/** How bytes that are no text are shown. */
const BYTES = '{"encoding":"base64","data":"';

/** A target's answer as it is stored: like `maskJsonText`, and of bytes, into which nobody can look, nothing. */
export function maskResponseText(json: string, viewer: Viewer, tally: Tally = NONE()): string {
  return json.startsWith(BYTES) ? `${BYTES}${MASK}"}` : maskJsonText(json, viewer, tally);
}

/** `application/x-www-form-urlencoded`, or a URL, whole or relative: a space belongs to it. */
export function maskUrl(url: string, viewer: Viewer, tally: Tally = NONE()): string {
  const masking = new Masking(viewer, tally);
  const bare = maskFormats(url, masking);
  const inner = (nested: string) => maskNested(nested, masking, 1);
  return mayHoldPairs(bare) ? maskPairs(bare, { isWhole: true, isQuoted: false }, masking, inner) : bare;
}

/** Any text: formats, and members and parameters with a secret's name where it holds some. */
export function maskText(text: string, viewer: Viewer, tally: Tally = NONE()): string {
  return maskNested(text, new Masking(viewer, tally), 0);
}

/** `a:b@`. Nothing shorter holds a secret. */
const SECRET_CHARS_MIN = 4;

function maskNested(text: string, masking: Masking, depth: number): string {
  if (text.length < SECRET_CHARS_MIN) return text;
  const hasMembers = HAS_MEMBERS.test(text);
  if (depth > NESTED_TEXTS_MAX) {
    // A request could be hidden from whoever decides by wrapping it often enough.
    const isHidden = masking.viewer === "public" && (hasMembers || mayHoldPairs(text));
    return isHidden ? masking.hide(text, "text") : maskFormats(text, masking);
  }
  const inner = (nested: string) => maskNested(nested, masking, depth + 1);
  const masked = maskFormats(hasMembers ? maskMembers(text, masking, inner) : text, masking);
  // Quotes end a value only where members stand between them: elsewhere they may be part of a secret.
  return mayHoldPairs(masked) ? maskPairs(masked, { isWhole: false, isQuoted: hasMembers }, masking, inner) : masked;
}
