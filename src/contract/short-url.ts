/**
 * A text with a URL in it, or one that begins with a host, in at most so many characters; the host always stays whole,
 * however long it is: cut in the middle, `api.example.com.evil.test` would be read as another.
 */
export function shortenUrl(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const end = Math.max(charsMax - 1, hostEnd(text));
  if (end >= text.length) return text;
  const isPair = isHighSurrogate(text.charCodeAt(end - 1));
  return `${text.slice(0, isPair ? end - 1 : end)}…`;
}

/** Behind the host and port of the first URL in the text, or of the host that it begins with. */
export function hostEnd(text: string): number {
  const scheme = text.indexOf("://");
  const start = scheme === -1 ? 0 : scheme + "://".length;
  const length = text.slice(start).search(/[/?#\\]/);
  return length === -1 ? text.length : start + length;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
