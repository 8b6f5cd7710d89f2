import { maskSecret } from "./mask-secret.ts";

/**
 * Masks what looks like a secret wherever it stands: `Bearer …`, `Basic …`, JWT, PEM blocks and keys with a known
 * beginning (hostile 6). Linear: each pattern either matches or gives up after a bounded look.
 */
export function maskTokens(text: string): string {
  if (!MAY_HOLD_TOKEN.test(text)) return text;
  return text
    .replace(PEM, maskSecret)
    .replace(BEARER, maskCredentials)
    .replace(SCHEME, maskCredentials)
    .replace(JWT, (found) => (found.includes(".") ? maskSecret(found) : found))
    .replace(KEY, maskSecret)
    .replace(GLUED_KEY, maskSecret);
}

/** Something that is in every text with a secret of those shapes. Most texts are done with in this one look. */
const MAY_HOLD_TOKEN = /earer\s|EARER\s|asic\s|ASIC\s|eyJ|-----BEGIN|sk_|ghp_|_pat_|xox|AKIA|AIza|whsec_|og_/;

/** A block without its end reaches to the end of the text: an answer may have been cut within it. */
const PEM = /-----BEGIN [A-Z0-9 ]{1,40}-----[^]*?(?:-----END [A-Z0-9 ]{1,40}-----|$)/g;

/**
 * Everything up to a space or quote: tokens with `|`, `:` and other signs are in use too. Neither what is masked already
 * nor a scheme written twice, whose credentials follow.
 */
const BEARER = /\b(Bearer\s+)(?!••••|(?:Bearer|bearer|BEARER|Basic|basic|BASIC)\s)([^\s"'\\,;<>]+)/g;

/** But `Basic plan`, `the bearer of`: a short word of small letters. The base64 of `user:password` never looks like one. */
const SCHEME =
  /\b((?:bearer|BEARER|Basic|basic|BASIC)\s+)(?!••••|[A-Z]?[a-z]{1,14}[.!?)]?(?:[\s"'\\,;<>]|$))([^\s"'\\,;<>]+)/g;

/** Always matches behind its first letters, so that a run of characters is read once; without a dot it is no JWT. */
const JWT = /eyJ[\w-]*(?:\.[\w-][\w.-]*)?/g;

const KEY = /(?<![0-9A-Za-z])(?:(?:sk_live_|sk_test_|ghp_|github_pat_|xox[0-9A-Za-z]-)[\w-]{4,}|whsec_[\w+/=-]{4,})/g;

/** Within a longer word only what is long enough to be no accident: `task_test_results` holds no key. */
const GLUED_KEY =
  /(?:sk_live_|sk_test_|ghp_|github_pat_|xox[0-9A-Za-z]-)[0-9A-Za-z]{16}[\w-]*|whsec_[0-9A-Za-z]{16}[\w+/=-]*|AKIA[0-9A-Z]{12}[\w-]*|AIza[\w-]{16,}|og_[0-9A-Za-z]{30}[\w-]*/g;

function maskCredentials(_found: string, scheme: string, credentials: string): string {
  return scheme + maskSecret(credentials);
}
