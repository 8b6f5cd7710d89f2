import { withoutMasks } from "./mask-value.ts";

/** Words in a name that make its value a secret, and the kind that the mask shows. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["password", "password"],
  ["passwords", "password"],
  ["passwd", "password"],
  ["pwd", "password"],
  ["passphrase", "passphrase"],
  ["secret", "secret"],
  ["secrets", "secret"],
  ["token", "token"],
  ["auth", "credentials"],
  ["authorization", "credentials"],
  ["credential", "credentials"],
  ["credentials", "credentials"],
  ["signature", "signature"],
  ["cookie", "cookie"],
  ["cookies", "cookie"],
  ["session", "session"],
  ["jwt", "token"],
  ["otp", "one-time-code"],
  ["pin", "PIN"],
  ["cvv", "card-code"],
  ["cvc", "card-code"],
]);

/** The same for two words in a row, also written as one. */
const PAIRS: ReadonlyMap<string, string> = new Map([
  ["apikey", "key"],
  ["accesskey", "key"],
  ["privatekey", "key"],
  ["secretkey", "key"],
  ["signingkey", "key"],
  ["cardnumber", "card-number"],
]);

/** Words that mean a secret in a query string only; elsewhere `key` and `code` name harmless things. */
const QUERY_WORDS: ReadonlyMap<string, string> = new Map([
  ["key", "key"],
  ["code", "code"],
  ["sig", "signature"],
  ["access", "token"],
]);

/**
 * A quick check: contains a part of every word and pair above. Most names fail it, and it is five times as fast as splitting
 * a name into words.
 */
const MAY_BE_SENSITIVE =
  /pass|pwd|secret|token|auth|cred|signature|cookie|session|jwt|otp|pin|cvv|cvc|(?:api|access|private|signing)[^a-z]*key|card[^a-z]*number/i;

const MAY_BE_SENSITIVE_IN_QUERY = /key|code|sig|access/i;

/** Longer names count as secret without being split, which would take too long. */
const NAME_CHARS_MAX = 256;

/** Headers whose values are shown. An allow list, since a list of secret headers would never be complete. */
const VISIBLE_HEADERS = new Set([
  "accept",
  "content-type",
  "content-length",
  "user-agent",
  "idempotency-key",
  "x-request-id",
  "webhook-id",
  "webhook-timestamp",
  "retry-after",
  // They name the operation, which approvers have to see.
  "soapaction",
  "x-amz-target",
]);

/** Whether a header's value is shown, apart from secrets that are found by their format. */
export function isVisibleHeader(name: string): boolean {
  return VISIBLE_HEADERS.has(name.toLowerCase());
}

/** The kind of secret that the name of a JSON member or form field means; null: none. */
export function secretKind(name: string): string | null {
  if (name.length > NAME_CHARS_MAX) return "secret";
  // The words in a mask describe what it hides, not the value of this name.
  const bare = withoutMasks(name);
  return WORDS.get(bare) ?? (MAY_BE_SENSITIVE.test(bare) ? firstOf(readingsOf(bare), kindIn) : null);
}

/** The same for a query parameter, where a few more words mean a secret. */
export function parameterKind(name: string): string | null {
  const kind = secretKind(name);
  if (kind !== null || !MAY_BE_SENSITIVE_IN_QUERY.test(name)) return kind;
  return firstOf(readingsOf(withoutMasks(name)), (words) => firstOf(words, (word) => QUERY_WORDS.get(word) ?? null));
}

function kindIn(words: readonly string[]): string | null {
  return firstOf(
    words,
    (word, at) => WORDS.get(word) ?? PAIRS.get(word) ?? PAIRS.get(word + (words[at + 1] ?? "")) ?? null,
  );
}

function firstOf<Item>(items: readonly Item[], kindOf: (item: Item, at: number) => string | null): string | null {
  for (const [at, item] of items.entries()) {
    const kind = kindOf(item, at);
    if (kind !== null) return kind;
  }
  return null;
}

/**
 * A name split into lower-case words at non-letters and capitals. A run of capitals is read in two ways: `JWTToken` is JWT and
 * Token, `APIkey` is API and key.
 */
function readingsOf(name: string): readonly (readonly string[])[] {
  const usual = wordsOf(name, /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g);
  return /[A-Z]{2}[a-z]/.test(name) ? [usual, wordsOf(name, /[A-Z]{2,}|[A-Z]?[a-z]+/g)] : [usual];
}

function wordsOf(name: string, word: RegExp): readonly string[] {
  return (name.match(word) ?? []).map((found) => found.toLowerCase());
}
