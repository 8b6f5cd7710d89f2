/** What shorter texts hold may be guessed, and may be a word. */
const GENERATED_CHARS_MIN = 16;
const GENERATED_BITS_MIN = 3.5;
/** Of so many characters one at least is of another kind than the one before it: names and words change more rarely. */
const CHARS_FOR_A_CHANGE = 6;
const [LOWER_CASE, UPPER_CASE, DIGIT_CASE] = [1, 2, 3];

/**
 * Whether a program drew the text at random: at least 16 characters without spaces, of at least so many bits each, in which
 * letters and digits, or capitals and small letters, change places as often as chance has it. Length and entropy alone
 * would hide `production-database` and `deleteAllCustomersNow` from whoever has to approve them.
 */
export function looksGenerated(text: string, bitsMin = GENERATED_BITS_MIN): boolean {
  if (text.length < GENERATED_CHARS_MIN || /\s/.test(text)) return false;
  return changesOf(text) * CHARS_FOR_A_CHANGE >= text.length && entropyOf(text) >= bitsMin;
}

/** A small letter behind a capital is no change: so do words begin. */
function changesOf(text: string): number {
  let changes = 0;
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    const kind = caseOf(text.charCodeAt(at));
    if (kind !== 0 && before !== 0 && kind !== before && !(before === UPPER_CASE && kind === LOWER_CASE)) changes += 1;
    before = kind;
  }
  return changes;
}

function caseOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT_CASE;
  if (code >= 0x41 && code <= 0x5a) return UPPER_CASE;
  return code >= 0x61 && code <= 0x7a ? LOWER_CASE : 0;
}

/** Characters that an entropy is taken of: a secret shows itself in fewer. */
const ENTROPY_CHARS_MAX = 256;

/** Shannon entropy of a text by the frequency of its own characters, in bits for each; beyond ASCII all count as one. */
export function entropyOf(text: string): number {
  const length = Math.min(text.length, ENTROPY_CHARS_MAX);
  const counts = new Uint16Array(129);
  for (let at = 0; at < length; at += 1) {
    const code = Math.min(128, text.charCodeAt(at));
    counts[code] = (counts[code] ?? 0) + 1;
  }
  let bits = 0;
  for (let at = 0; at < length; at += 1) bits -= Math.log2((counts[Math.min(128, text.charCodeAt(at))] ?? 1) / length);
  return length === 0 ? 0 : bits / length;
}
