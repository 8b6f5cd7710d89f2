const PERCENT = 0x25;

/** Decodes plus and percent signs byte by byte; the names and formats of secrets are ASCII. */
export function decode(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  let decoded = "";
  let kept = 0;
  for (let at = spaced.indexOf("%"); at !== -1 && at < spaced.length; at += 1) {
    const byte = byteAt(spaced, at);
    if (byte === null) continue;
    decoded += spaced.slice(kept, at) + String.fromCharCode(byte);
    kept = at + 3;
    at = kept - 1;
  }
  return kept === 0 ? spaced : decoded + spaced.slice(kept);
}

/** The byte that a percent sign here and the two characters after it stand for. */
export function byteAt(text: string, at: number): number | null {
  if (text.charCodeAt(at) !== PERCENT) return null;
  const [high, low] = [hexDigit(text.charCodeAt(at + 1)), hexDigit(text.charCodeAt(at + 2))];
  return high === -1 || low === -1 ? null : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 && code < 0x80 ? small - 0x57 : -1;
}
