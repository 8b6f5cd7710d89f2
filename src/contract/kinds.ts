import Type from "typebox";
import { EMAIL_CHARS_MAX, KEY_CHARS_MAX, NAME_CHARS_MAX, REASON_CHARS_MAX, URL_CHARS_MAX } from "../domain/limits.ts";
import { isStorableText } from "../domain/json.ts";

/** Text of ours: no control character gets into it (hostile 1). */
const PRINTABLE = "^[ -~]*$";
const printable = (maxLength: number, description: string, example: string) =>
  Type.String({ minLength: 1, maxLength, pattern: PRINTABLE, description, examples: [example] });

/**
 * Words of JSON Schema for the API description alone: what another place than the schema enforces, in its own sentences.
 * `test/contract/enforced.test.ts` holds both against each other.
 */
export const ENFORCED = "x-enforced";
export const enforced = (words: Readonly<Record<string, unknown>>) => ({ [ENFORCED]: words });

/** The scheme in any case; no white space and no backslash behind it. */
const TARGET_URL = String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$`;

/** Letters of any script too: lists are asked for a host in whatever spelling people know it. */
const HOST = "^[^\\x00-\\x20/\\x7f-\\xa0]{1,260}$";

/** What a text of a pattern must be, in words: an expression is no message. */
export const PATTERN_MESSAGES: ReadonlyMap<string, string> = new Map([
  [PRINTABLE, "May hold only printable ASCII characters."],
  [HOST, "Must be a host name, with or without a port."],
]);

/** What a text of a format must be. */
export const FORMAT_NAMES: ReadonlyMap<string, string> = new Map([["email", "email address"]]);

/** The host of a URL, as lists look for it. */
export const hostSchema = (description: string) =>
  Type.String({ pattern: HOST, description, examples: ["api.example.com"] });

/** A key of a caller's own: `dedupe`, `Idempotency-Key` (decisions 3). */
export const key = (description: string) => printable(KEY_CHARS_MAX, description, "order-4711");

/** What people call a thing of theirs. */
export const nameSchema = (description: string) => printable(NAME_CHARS_MAX, description, "ci");

export const emailSchema = (description: string) =>
  Type.String({ format: "email", maxLength: EMAIL_CHARS_MAX, description, examples: ["ann@example.com"] });

/** Free text of people and agents: any Unicode that can be stored and shown. */
export const reason = (description: string) =>
  Type.Refine(
    Type.String({
      maxLength: REASON_CHARS_MAX,
      description: `${description} Well-formed Unicode without NUL.`,
      examples: ["Agreed with Ann."],
    }),
    isStorableText,
    () => "Must be well-formed Unicode without NUL.",
  );

/** Which run of an action; a manual retry begins the next one. */
export const run = (description: string) => Type.Integer({ minimum: 1, description, examples: [1] });

/** Where calls go; judged by `Targets`, which knows more than a format. */
export const url = (description: string, example = "https://api.example.com/orders") =>
  Type.String({ format: "uri", description, examples: [example] });

/** The same in a request, where `Targets` judges it. */
export const targetUrl = (description: string, example = "https://api.example.com/orders") =>
  Type.String({
    format: "uri",
    description,
    examples: [example],
    ...enforced({ maxLength: URL_CHARS_MAX, pattern: TARGET_URL }),
  });

/** Text that an answer holds. */
export const plainText = (description: string, example: string) => Type.String({ description, examples: [example] });

export const dateTime = (description: string) =>
  Type.String({ format: "date-time", description, examples: ["2026-03-04T12:00:00.000Z"] });

/** Null where there is no value: in answers, which always have the member. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A JSON object of which nothing is ours. */
export const anyObject = (description: string) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({ type: "object", description, examples: [{ order: 7 }] });

export const stringMap = (description: string, more: Readonly<Record<string, unknown>> = {}) =>
  // Not `Type.Record`: its pattern `^.*$` lets a name with a newline in it go unchecked.
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: "object",
    additionalProperties: { type: "string" },
    description,
    examples: [{ "X-Order": "7" }],
    ...more,
  });
