/** A `Content-Type` as it was sent, taken apart (RFC 9110, 8.3). */
export interface MediaType {
  /** `type/subtype`, in lower case; blanks before the first semicolon belong to it, as in the pattern of the contract. */
  readonly essence: string;
  /** Every value of the parameter `charset`, in lower case and unquoted, in the order in which they came. */
  readonly charsets: readonly string[];
}

/**
 * Reads a media type in one pass over its characters: a pattern with blanks around every part takes cubic time on a
 * header full of them. Never throws; what is malformed comes out as a value that nobody accepts.
 */
export function readMediaType(header: string): MediaType {
  const [essence = "", ...parameters] = splitOutsideQuotes(header);
  const charsets: string[] = [];
  for (const parameter of parameters) {
    const equals = parameter.indexOf("=");
    const name = (equals === -1 ? parameter : parameter.slice(0, equals)).trim().toLowerCase();
    if (name === "charset")
      charsets.push(unquote(equals === -1 ? "" : parameter.slice(equals + 1).trim()).toLowerCase());
  }
  return { essence: essence.toLowerCase(), charsets };
}

/** Splits at semicolons; one inside a quoted string belongs to it. */
function splitOutsideQuotes(header: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < header.length; at += 1) {
    const char = header[at];
    if (isQuoted && char === "\\") at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (char === ";" && !isQuoted) {
      parts.push(header.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(header.slice(from));
  return parts;
}

function unquote(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).trim() : value;
}
