/** Words that make the value of a member, form field or query parameter a secret (hostile 6). */
const WORDS = new Set([
  "password",
  "passwords",
  "passwd",
  "pwd",
  "passphrase",
  "secret",
  "secrets",
  "token",
  "auth",
  "authorization",
  "credential",
  "credentials",
  "signature",
  "cookie",
  "cookies",
  "session",
  "jwt",
  "otp",
  "pin",
  "cvv",
  "cvc",
]);

/** Two words in a row that do the same; `secret key` is in the list by its first. Written as one they are found too. */
const PAIRS = new Set(["apikey", "accesskey", "privatekey", "secretkey", "signingkey", "cardnumber"]);

/** Words that do so in a query string only: elsewhere `key` and `code` name harmless things. */
const QUERY_WORDS = new Set(["key", "code", "sig", "access"]);

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
]);

/** Whether a header's value may be shown, but for secrets by shape that stand in it. */
export function isVisibleHeader(name: string): boolean {
  return VISIBLE_HEADERS.has(name.toLowerCase());
}

/** Whether the name of a JSON member or form field says that its value is a secret. */
export function isSensitiveName(name: string): boolean {
  if (name.length > NAME_CHARS_MAX || WORDS.has(name)) return true;
  return MAY_BE_SENSITIVE.test(name) && readingsOf(name).some(saysSecret);
}

/** The same for a parameter of a query string, where a few more words do. */
export function isSensitiveParameter(name: string): boolean {
  if (isSensitiveName(name)) return true;
  return (
    MAY_BE_SENSITIVE_IN_QUERY.test(name) &&
    readingsOf(name).some((words) => words.some((word) => QUERY_WORDS.has(word)))
  );
}

function saysSecret(words: readonly string[]): boolean {
  return words.some((word, at) => WORDS.has(word) || PAIRS.has(word) || PAIRS.has(word + (words[at + 1] ?? "")));
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
