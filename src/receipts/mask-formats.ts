import { findSecrets, findStructured } from "./find-secrets.ts";
import type { Masking } from "./mask-value.ts";

/** No format is shorter, about the length of `Basic dTpwYXNz`. */
const FORMAT_CHARS_MIN = 14;

/** Masks everything with the format of a secret, for every viewer. Linear in the text. */
export function maskFormats(text: string, masking: Masking): string {
  if (text.length < FORMAT_CHARS_MIN) return text;
  const [known, structured] = [findSecrets(text), findStructured(text)];
  if (known.length === 0 && structured.length === 0) return text;
  const found =
    structured.length === 0 ? known : [...known, ...structured].toSorted((a, b) => a.start - b.start || b.end - a.end);
  let masked = "";
  let kept = 0;
  for (const { start, end, name } of found) {
    // Skip a secret inside the last one; of one that overlaps it, mask the rest.
    if (end <= kept) continue;
    masked += text.slice(kept, start) + masking.hide(text.slice(Math.max(start, kept), end), name);
    kept = end;
  }
  return masked + text.slice(kept);
}
