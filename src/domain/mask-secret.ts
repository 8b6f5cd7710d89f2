/** What stands in place of a secret, or of its beginning. */
export const MASK = "••••";

/** A secret of at least so many characters shows its last four: enough to tell two keys apart, too few to guess one. */
const TAIL_FROM_CHARS = 16;
const TAIL_CHARS = 4;

/** The mask of a secret (hostile 6). What is masked already comes back as it is. */
export function maskSecret(secret: string): string {
  if (isAtMost(secret, MASK.length + TAIL_CHARS) && secret.startsWith(MASK)) return secret;
  if (isAtMost(secret, TAIL_FROM_CHARS - 1)) return MASK;
  return (
    MASK +
    Array.from(secret.slice(-2 * TAIL_CHARS))
      .slice(-TAIL_CHARS)
      .join("")
  );
}

const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Counts whole characters, of which one may be two units long: half of one could not be printed. */
function isAtMost(text: string, chars: number): boolean {
  if (text.length <= chars || text.length > 2 * chars) return text.length <= chars;
  return text.length - (text.match(SURROGATE_PAIR)?.length ?? 0) <= chars;
}
