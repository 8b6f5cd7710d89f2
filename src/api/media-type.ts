import type { BodyMember } from "../core/body.ts";

/**
 * Parses a media type in one pass, because a regular expression takes cubic time on a header full of blanks. Never throws: a
 * malformed header becomes a value that no caller accepts. `essence`: `type/subtype` in lower case, with any blanks before the
 * first semicolon. `charsets`: all values of that parameter in order, in lower case and unquoted.
 */
export function readMediaType(header: string): { readonly essence: string; readonly charsets: readonly string[] } {
  const [essence = "", ...parameters] = splitParts(header);
  const charsets: string[] = [];
  for (const parameter of parameters) {
    const equals = parameter.indexOf("=");
    const name = (equals === -1 ? parameter : parameter.slice(0, equals)).trim().toLowerCase();
    if (name === "charset")
      charsets.push(unquote(equals === -1 ? "" : parameter.slice(equals + 1).trim()).toLowerCase());
  }
  return { essence: essence.toLowerCase(), charsets };
}

function unquote(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).trim() : value;
}

/** A media type (RFC 9110, 8.3.1) in lower case; null unless it is exactly one and well-formed. Targets differ on anything else. */
function writtenType(header: string) {
  const [essence = "", ...rest] = splitParts(header.toLowerCase());
  if (!ESSENCE.test(essence.trim())) return null;
  const parameters = rest.map((part) => parseParameter(part.trim()));
  if (!parameters.every((parameter) => parameter !== null)) return null;
  const names = new Set(parameters.map(([name]) => name));
  return names.size < parameters.length ? null : { essence: essence.trim(), parameters };
}

const ESSENCE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/;

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** Splits at semicolons outside of quotes. In quotes, a backslash escapes. */
function splitParts(header: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < header.length; at += 1) {
    if (isQuoted && header[at] === "\\") at += 1;
    else if (header[at] === '"') isQuoted = !isQuoted;
    else if (header[at] === ";" && !isQuoted) {
      parts.push(header.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, header.slice(from)];
}

/** Reads a parameter. Refuses a backslash in quotes, which only some targets read as an escape. */
function parseParameter(part: string): readonly [name: string, value: string] | null {
  const equals = part.indexOf("=");
  const [name, written] = [part.slice(0, Math.max(equals, 0)), part.slice(equals + 1)];
  const isQuoted = written.length > 1 && written.startsWith('"') && written.endsWith('"');
  const value = isQuoted ? written.slice(1, -1) : written;
  const isValue = isQuoted ? !/["\\]/.test(value) : TOKEN.test(value);
  return TOKEN.test(name) && isValue ? [name, value] : null;
}

/**
 * What is wrong with the `Content-Type` of a request with this body; null if nothing. Targets must read a body as approvers see
 * it, which its member decides. `body` has only the rules that it always had.
 */
export function contentTypeProblem(value: string, member: BodyMember): string | null {
  if (member === "body") return JSON_TYPE.test(value) ? charsetProblem(value) : NOT_JSON;
  const type = writtenType(value);
  if (type === null) return "Is not one media type, such as text/csv; charset=utf-8, without escapes in quotes.";
  const written = type.parameters.map(([name, text]) => `${name}=${text}`);
  const isUtf8 = written.every((parameter) => !parameter.includes("charset") || parameter === "charset=utf-8");
  if (member !== "base64" && !isUtf8) return NOT_UTF_8;
  const words = written.join(" ");
  if ((member !== "json" && JSON_WORD.test(words)) || FORM_WORD.test(words))
    return "Names another type in a parameter, which some targets read the body as.";
  if (member === "json") return JSON_TYPE.test(type.essence) ? null : NOT_JSON;
  if (member === "form") {
    return type.essence === FORM_TYPE ? null : `The body is sent as a form: use ${FORM_TYPE}, or leave the header out.`;
  }
  if (JSON_WORD.test(type.essence) && !JSON_LINES.has(type.essence))
    return "Says that the body is JSON: give it as json, so that it is shown and checked as JSON.";
  if (FORM_WORD.test(type.essence)) return "Says that the body is a form: give it as form, so that it is shown as one.";
  if (member === "text" && type.essence.startsWith("multipart/")) return "Is for bytes: give the body as base64.";
  return null;
}

/** What a target may read differently in the charset of a `Content-Type`; null if nothing. Also for requests without a body. */
export function charsetProblem(value: string): string | null {
  return /charset/i.test(value.replaceAll(UTF_8, "")) ? NOT_UTF_8 : null;
}

/** Whether targets read bytes with this `Content-Type` as UTF-8, so that they can be shown as such. */
export function isReadAsUtf8(value: string): boolean {
  return charsetProblem(value) === null;
}

const NOT_JSON = "The body is sent as JSON: use application/json or application/*+json.";

const NOT_UTF_8 =
  "The body is sent in UTF-8: a target that believes another charset reads another body than was approved.";

const JSON_TYPE = /^application\/(json|[a-z0-9!#$&^_.+-]+\+json)\s*(;.*)?$/i;

const FORM_TYPE = "application/x-www-form-urlencoded";

const UTF_8 = /;[ \t]*charset=(?:utf-8|"utf-8")(?=[ \t]*(?:;|$))/gi;

/** Matches anywhere, because some targets look for the word anywhere in the header. */
const JSON_WORD = /json/;

const FORM_WORD = /urlencoded/;

/** Types with one JSON text per line, which is no JSON text as a whole. */
const JSON_LINES = new Set([
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonlines",
  "application/jsonlines",
]);
