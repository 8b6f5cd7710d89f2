import type { Viewer } from "../core/roles.ts";
import { NAMES_READ_MAX } from "../core/limits.ts";
import { GENERATED_CHARS_MIN, looksGenerated } from "./random-text.ts";

/** The start of every mask. Alone it replaces values that are always hidden. */
export const MASK = "••••";

/** A mask as `maskFor` writes it, or `••••` alone. */
const MASK_SOURCE = String.raw`••••(?:\([A-Za-z0-9.-]{1,40},\d{1,9}-chars?(?:,…[A-Za-z0-9._~-]{1,4})?\))?`;

export const MASK_PATTERN = new RegExp(MASK_SOURCE, "g");

const MASK_HERE = new RegExp(MASK_SOURCE, "y");

const EACH_MASK = new RegExp(`(${MASK_SOURCE})`);

/** Applies `change` to each part of the text between masks, and keeps the masks as they are. */
export function changedBetweenMasks(text: string, change: (part: string, isBeforeMask: boolean) => string): string {
  if (!text.includes(MASK)) return change(text, false);
  const parts = text.split(EACH_MASK);
  return parts.map((part, at) => (part.startsWith(MASK) ? part : change(part, at + 1 < parts.length))).join("");
}

/** The end of the mask that begins at `start`, or `start` if none begins there. */
export function endOfMask(text: string, start: number): number {
  MASK_HERE.lastIndex = start;
  return MASK_HERE.test(text) ? MASK_HERE.lastIndex : start;
}

/** Hides what one viewer may not see, and counts it. */
export class Masking {
  readonly viewer: Viewer;
  /** The number of values hidden so far. */
  hidden = 0;

  constructor(viewer: Viewer) {
    this.viewer = viewer;
  }

  /** The mask of a secret. A mask is returned as it is. */
  hide(secret: string, kind: string): string {
    if (secret.startsWith(MASK) && withoutMasks(secret) === "") return secret;
    this.hidden += 1;
    return maskFor(secret, kind);
  }

  /**
   * Whether to hide a value with the name of a secret: from the public always, but from deciders only if it looks generated.
   * Otherwise an agent could hide a request from them by naming its parts tokens.
   */
  hidesNamed(value: string): boolean {
    if (this.viewer === "public") return !CONSTANTS.has(value);
    return value.length >= GENERATED_CHARS_MIN && looksGenerated(withoutMasks(value));
  }

  /** Hides a value with the name of a secret as a whole, or masks its parts. */
  hideNamed(value: string, kind: string, maskParts: (value: string) => string): string {
    if (this.hidesNamed(value)) return this.hide(value, kind);
    const masked = maskParts(value);
    // What is left between masks may look generated: hide it now, so that masking a second time changes nothing.
    return masked !== value && this.hidesNamed(masked) ? this.hide(value, kind) : masked;
  }

  /** Hides a value of several words with the name of a secret: from the public whole, from deciders the generated words. */
  hideIn(value: string, kind: string): string {
    if (this.viewer === "public") return this.hidesNamed(value) ? this.hide(value, kind) : value;
    if (value.length < GENERATED_CHARS_MIN) return value;
    return value.replace(WORD, (word) => {
      // Keep a name before the value, as in `theme=dark`, but not in padded base64.
      const start = /^[^=]*=(?!=|$)/.exec(word)?.[0].length ?? 0;
      const secret = word.slice(start);
      return this.hidesNamed(secret) ? word.slice(0, start) + this.hide(secret, kind) : word;
    });
  }
}

/** A word in a value, such as a part of a cookie, of credentials or of a list. */
const WORD = /[^\s;,"]+/g;

/** Values that can't be secret. */
const CONSTANTS = new Set(["", "true", "false", "null"]);

/** The mask of a secret: kind, length and end, like `••••(GitHub-token,40-chars,…a1B2)`. */
export function maskFor(secret: string, kind: string): string {
  const chars = countCharacters(secret);
  return chars < TAIL_FROM_CHARS
    ? (shortMasks(kind)[chars] ?? MASK)
    : `${MASK}(${kindLabel(kind)},${chars}-chars${shownTail(secret)})`;
}

function kindLabel(kind: string): string {
  return kind.replaceAll(" ", "-");
}

/** Secrets of at least this length show their last four characters, so that people can tell keys apart. */
const TAIL_FROM_CHARS = 16;

/** The masks of shorter secrets, by kind and length: a megabyte may hold 300,000 of them. There are as many kinds as rules. */
const SHORT_MASKS = new Map<string, readonly string[]>();

function shortMasks(kind: string): readonly string[] {
  let masks = SHORT_MASKS.get(kind);
  if (masks === undefined) {
    const label = kindLabel(kind);
    masks = Array.from(
      { length: TAIL_FROM_CHARS },
      (_, chars) => `${MASK}(${label},${chars}-char${chars === 1 ? "" : "s"})`,
    );
    SHORT_MASKS.set(kind, masks);
  }
  return masks;
}

const TAIL_CHARS = 4;

/** Characters left out of a mask, since they could end a value in JSON, a form or a URL. */
const NO_TAIL = /[^A-Za-z0-9._~-]/g;

function shownTail(secret: string): string {
  const end = secret
    .slice(-2 * TAIL_CHARS)
    .replace(NO_TAIL, "")
    .slice(-TAIL_CHARS);
  return end === "" ? "" : `,…${end}`;
}

/** Counts characters; a surrogate pair is one. */
function countCharacters(text: string): number {
  let characters = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) characters += 1;
  return characters;
}

function withoutMasks(text: string): string {
  return text.length >= MASK.length && text.includes(MASK) ? text.replace(MASK_PATTERN, "") : text;
}

/** Whether a header's value is shown, apart from secrets that are found by their format. */
export function isVisibleHeader(name: string): boolean {
  return VISIBLE_HEADERS.has(name.toLowerCase());
}

/** An allow list, since a list of secret headers would never be complete. */
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
  // These name the operation, which approvers must see.
  "soapaction",
  "x-amz-target",
]);

/** The kind of secret that the name of a JSON member or form field means; null: none. */
export function secretKind(name: string): string | null {
  if (name.length > NAME_CHARS_MAX) return "secret";
  // The words in a mask describe what it hides, not the value of this name.
  const bare = withoutMasks(name);
  const kind = WORDS.get(bare);
  if (kind !== undefined) return kind;
  if (!MAY_BE_SENSITIVE.test(bare)) return null;
  const known = NAMES_READ.get(bare);
  if (known !== undefined) return known;
  const found = isNamingMember(bare) ? null : kindOfWords(inLatin(bare));
  // Store a copy of the name: a slice of a body would keep the whole body in memory.
  if (NAMES_READ.size < NAMES_READ_MAX) NAMES_READ.set(Buffer.from(bare).toString(), found);
  return found;
}

function kindOfWords(name: string): string | null {
  return firstKind(name, kindInName) ?? WORDS.get(ENDING.exec(name)?.[1]?.toLowerCase() ?? "") ?? null;
}

/** What names were found to mean. Splitting a name is the slowest step, and most texts repeat a few names. */
const NAMES_READ = new Map<string, string | null>();

/** Whether a header's name says that it holds credentials of the caller. */
export function isCredentialHeader(name: string): boolean {
  return CREDENTIAL_KINDS.has(secretKind(name) ?? "");
}

const CREDENTIAL_KINDS: ReadonlySet<string> = new Set(["credentials", "token", "key", "secret", "password"]);

/** The kind of secret that two separate words mean; null: none. */
export function pairKind(first: string, second: string): string | null {
  return WORDS.get(`${first}_${second}`.toLowerCase()) ?? null;
}

function kindInName(word: string, next: string, before: string): string | undefined {
  const isKey = word === "key" && next === "" && before !== "" && !HARMLESS_KEYS.has(before);
  return WORDS.get(word) ?? WORDS.get(`${word}_${next}`) ?? (isKey ? "key" : undefined);
}

/** The last word of a name whose words are not separated, as in `newpassword` and `clientsecret`. */
const ENDING = /(password|passwd|passphrase|passwort|contrasena|senha|wachtwoord|secret|token)(?![a-z])/i;

/** The name in the letters that `nameWords` reads: without accents, and with "password" for that word in other scripts. */
function inLatin(name: string): string {
  if (ONLY_ASCII.test(name)) return name;
  const plain = name.normalize("NFKC").replaceAll(PASSWORD_ELSEWHERE, " password ").normalize("NFD");
  return plain.replaceAll(/\p{M}/gu, "").replaceAll("ł", "l").replaceAll("Ł", "L");
}

const ONLY_ASCII = /^[\0-\x7f]*$/;

/** Spanish, Portuguese, German, French (of `mot_de_passe` the end), Dutch, Polish. */
const PASSWORD_IN_LATIN = "contrasena senha passwort kennwort motdepasse de_passe wachtwoord haslo".split(" ");

/** Russian, Chinese, Japanese, Korean. */
const PASSWORD_ELSEWHERE = /пароль|密码|密碼|パスワード|비밀번호/gi;

/** The kind of secret that the name of a query parameter means, where a few more words do; null: none. */
export function parameterKind(name: string): string | null {
  const kind = secretKind(name);
  if (kind !== null || !MAY_BE_SENSITIVE_IN_QUERY.test(name)) return kind;
  return firstKind(withoutMasks(name), (word) => QUERY_WORDS.get(word));
}

/** Whether digits are a card number, by the networks' prefixes and the check digit (ISO/IEC 7812). */
export function isCardNumber(digits: string): boolean {
  if (!/^(?:4|5[1-5]|2[2-7]|3[0-9]|6)\d{11,18}$/.test(digits) || digits.length < 13) return false;
  let sum = 0;
  for (let at = 1; at <= digits.length; at += 1) {
    const digit = Number(digits.at(-at));
    const doubled = at % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Members that name what their neighbour holds: `- name: DB_PASSWORD`, `value: …`. */
const NAMING: ReadonlySet<string> = new Set("name key field header label property variable parameterkey".split(" "));

const NAMED: ReadonlySet<string> = new Set("value val content stringvalue parametervalue".split(" "));

/** Whether a member with this name says what another member, with a name in `NAMED`, holds. */
export function isNamingMember(name: string): boolean {
  return NAMING.has(name.toLowerCase());
}

export function isNamedMember(name: string): boolean {
  return NAMED.has(name.toLowerCase());
}

type KindOfWord = (word: string, next: string, before: string) => string | undefined;

function firstKind(name: string, findKind: KindOfWord): string | null {
  for (const words of readings(name)) {
    for (const [at, word] of words.entries()) {
      const kind = findKind(word, words[at + 1] ?? "", words[at - 1] ?? "");
      if (kind !== undefined) return kind;
    }
  }
  return null;
}

/**
 * Splits a name into lower-case words at non-letters and capitals. A run of capitals is split in two ways: `JWTToken` is JWT
 * and Token, but `APIkey` is API and key.
 */
function readings(name: string): readonly (readonly string[])[] {
  const usual = nameWords(name, /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g);
  return /[A-Z]{2}[a-z]/.test(name) ? [usual, nameWords(name, /[A-Z]{2,}|[A-Z]?[a-z]+/g)] : [usual];
}

function nameWords(name: string, word: RegExp): readonly string[] {
  return (name.match(word) ?? []).map((found) => found.toLowerCase());
}

/** Longer names count as secret without being split, which would take too long. */
const NAME_CHARS_MAX = 256;

/**
 * Words in a name that make its value a secret, by the kind that the mask shows. `api_key` also stands for `apikey`.
 * Adding a word here may need a part of it in `MAY_BE_SENSITIVE`.
 */
export const SECRET_NAMES = {
  password: ["password", "passwords", "passwd", "pwd", "pw", "pass", "passcode", ...PASSWORD_IN_LATIN],
  passphrase: ["passphrase", "mnemonic", "seed_phrase"],
  secret: ["secret", "secrets", "connection_string", "dsn"],
  token: ["token", "jwt", "bearer"],
  credentials: [
    "auth",
    "authorization",
    "credential",
    "credentials",
    "creds",
    "dockerconfigjson",
    "dockercfg",
    "saml_response",
  ],
  key: ["api_key", "access_key", "private_key", "secret_key", "signing_key"],
  signature: ["signature"],
  cookie: ["cookie", "cookies"],
  session: ["session", "session_id", "sessid", "jsessionid", "phpsessid"],
  "one-time-code": [
    "otp",
    "totp",
    "mfa_code",
    "verification_code",
    "sms_code",
    "recovery_code",
    "recovery_codes",
    "backup_code",
    "backup_codes",
  ],
  PIN: ["pin"],
  "card-code": ["cvv", "cvc", "card_code", "security_code"],
  "card-number": ["card_number", "pan"],
  "social-security-number": ["ssn"],
} as const;

/** Any other name that ends in `_key` means a key. These name data. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set(
  "public primary foreign sort partition idempotency dedupe dedup ordering flow".split(" "),
);

const WORDS = byWord(SECRET_NAMES);

/** Words that mean a secret in a query string only; elsewhere `key` and `code` name harmless things. */
const QUERY_WORDS = byWord({ key: ["key"], code: ["code"], signature: ["sig"], token: ["access"] });

function byWord(kinds: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(kinds).flatMap(([kind, words]) =>
      words.flatMap((word) => [word, word.replace("_", "")].map((written) => [written, kind] as const)),
    ),
  );
}

/** Whether a text may hold the name of a secret, or of a secret in a query. */
export function maybeSensitive(text: string): boolean {
  if (MAY_BE_SENSITIVE.test(text)) return true;
  return (text.includes("?") || text.includes("#")) && MAY_BE_SENSITIVE_IN_QUERY.test(text);
}

/** A quick check that most names fail: it has a part of each name above, and takes a fifth of the time of splitting a name. */
const MAY_BE_SENSITIVE =
  /pass|pw|secret|token|auth|cred|signature|cookie|sess|jwt|otp|pin|cv[cv]|key|card|mnemonic|seed|connection|dsn|mfa|verification|ssn|pan|docker|bearer|saml|sms|recovery|backup|security|contrase|senha|wort|wachtw|haslo|[łп密パ비]/i;

const MAY_BE_SENSITIVE_IN_QUERY = /key|code|sig|access/i;

/** Replaces parts of a text, from its start to its end. */
export class EditedText {
  readonly #text: string;
  #edited = "";
  #kept = 0;

  constructor(text: string) {
    this.#text = text;
  }

  replace(start: number, end: number, by: string): void {
    this.#edited += this.#text.slice(this.#kept, start) + by;
    this.#kept = end;
  }

  toString(): string {
    return this.#kept === 0 ? this.#text : this.#edited + this.#text.slice(this.#kept);
  }
}
