import { withoutMasks } from "./mask-value.ts";

/** Words that make the value of a member, form field or query parameter a secret, and what a mask calls it. */
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

/** Two words in a row that do the same; `secret key` is in the list by its first. Written as one they are found too. */
const PAIRS: ReadonlyMap<string, string> = new Map([
  ["apikey", "key"],
  ["accesskey", "key"],
  ["privatekey", "key"],
  ["secretkey", "key"],
  ["signingkey", "key"],
  ["cardnumber", "card-number"],
]);

/** Words that do so in a query string only: elsewhere `key` and `code` name harmless things. */
const QUERY_WORDS: ReadonlyMap<string, string> = new Map([
  ["key", "key"],
  ["code", "code"],
  ["sig", "signature"],
  ["access", "token"],
]);

/**
 * Some piece of every word and pair above: a name without any is done with in one look, which is five times as quick as
 * taking it apart.
 */
const MAY_BE_SENSITIVE =
  /pass|pwd|secret|token|auth|cred|signature|cookie|session|jwt|otp|pin|cvv|cvc|(?:api|access|private|signing)[^a-z]*key|card[^a-z]*number/i;

const MAY_BE_SENSITIVE_IN_QUERY = /key|code|sig|access/i;

/** A longer name belongs to nothing that people write; judged whole, it would be a cheap way to keep the loop busy. */
const NAME_CHARS_MAX = 256;

/** Headers whose values may be seen by everybody who may see the action. A list of what may not would never be whole. */
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
  // What these name is done: they belong to what is approved.
  "soapaction",
  "x-amz-target",
]);

/** Whether a header's value may be shown, but for what has the format of a secret in it. */
export function isVisibleHeader(name: string): boolean {
  return VISIBLE_HEADERS.has(name.toLowerCase());
}

/** What the value of a JSON member or form field is by its name; null: the name says nothing of a secret. */
export function secretKind(name: string): string | null {
  if (name.length > NAME_CHARS_MAX) return "secret";
  // What stands in a mask says what was hidden there, and nothing of a value.
  const bare = withoutMasks(name);
  return WORDS.get(bare) ?? (MAY_BE_SENSITIVE.test(bare) ? firstOf(readingsOf(bare), kindIn) : null);
}

/** The same of a parameter of a query string, where a few more words do. */
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
 * A name as words in lower case, split at everything that is no letter, and at capitals. A run of capitals is read both
 * ways: `JWTToken` is JWT and Token, `APIkey` is API and key.
 */
function readingsOf(name: string): readonly (readonly string[])[] {
  const usual = wordsOf(name, /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g);
  return /[A-Z]{2}[a-z]/.test(name) ? [usual, wordsOf(name, /[A-Z]{2,}|[A-Z]?[a-z]+/g)] : [usual];
}

function wordsOf(name: string, word: RegExp): readonly string[] {
  return (name.match(word) ?? []).map((found) => found.toLowerCase());
}
