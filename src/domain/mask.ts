import { HAS_MEMBERS, maskMembers } from "./mask-json.ts";
import { maskPairs, mayHoldPairs } from "./mask-pairs.ts";
import { MASK, maskSecret } from "./mask-secret.ts";
import { maskTokens } from "./mask-shapes.ts";
import { isVisibleHeader } from "./mask-words.ts";

/**
 * What is shown in place of secrets to whoever may see an action but not use what it carries (hostile 6). Pure; never
 * throws; linear in the text; masking twice is masking once. What is stored and sent is never touched.
 */

/** Texts inside texts: JSON in a string, a URL in a parameter. What lies deeper and may hold a secret is masked whole. */
const NESTED_TEXTS_MAX = 4;

/** The headers with every value masked but those that may be seen; and of these what has a secret's shape. */
export function maskHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(headers);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, isVisibleHeader(name) ? maskText(value) : maskSecret(value)]),
  );
}

/** A JSON text, masked: JSON again, with everything that is no secret as it was written. */
export function maskJsonText(json: string): string {
  return maskMembers(json, (text) => maskNested(text, 1));
}

/** How bytes that are no text are shown (decisions 4). */
const BYTES = '{"encoding":"base64","data":"';

/** A target's answer as it is stored: like `maskJsonText`, and of bytes, into which nobody can look, nothing. */
export function maskResponseText(json: string): string {
  return json.startsWith(BYTES) ? `${BYTES}${MASK}"}` : maskJsonText(json);
}

/** `application/x-www-form-urlencoded`: the values of fields with a secret's name, and what has a secret's shape. */
export function maskForm(form: string): string {
  return maskWhole(form);
}

/** A URL, whole or relative: user info, the values of query parameters, and secrets by shape. The path is kept. */
export function maskUrl(url: string): string {
  return maskWhole(url);
}

/** Any text: what has a secret's shape, and members and parameters with a secret's name where it holds some. */
export function maskText(text: string): string {
  return maskNested(text, 0);
}

/** A text that is one URL or form from end to end, spaces and all. */
function maskWhole(text: string): string {
  const tokens = maskTokens(text);
  const inner = (nested: string) => maskNested(nested, 1);
  return mayHoldPairs(tokens) ? maskPairs(tokens, { isWhole: true, isQuoted: false }, inner) : tokens;
}

/** `a:b@`. Nothing shorter has a shape. */
const SECRET_CHARS_MIN = 4;

function maskNested(text: string, depth: number): string {
  if (text.length < SECRET_CHARS_MIN) return text;
  const hasMembers = HAS_MEMBERS.test(text);
  if (depth > NESTED_TEXTS_MAX) return hasMembers || mayHoldPairs(text) ? maskSecret(text) : maskTokens(text);
  const inner = (nested: string) => maskNested(nested, depth + 1);
  const masked = maskTokens(hasMembers ? maskMembers(text, inner) : text);
  // Quotes end a value only where members stand between them: elsewhere they may be part of a secret.
  return mayHoldPairs(masked) ? maskPairs(masked, { isWhole: false, isQuoted: hasMembers }, inner) : masked;
}
