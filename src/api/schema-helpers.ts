import Type, {
  type Static,
  type TSchema,
  type TObjectOptions,
  type TProperties,
  type TString,
  type TStringOptions,
} from "typebox";
import {
  EMAIL_CHARS_MAX,
  KEY_CHARS_MAX,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  NAME_CHARS_MAX,
  REASON_CHARS_MAX,
  URL_CHARS_MAX,
} from "../core/limits.ts";
import { isStorableText } from "../core/json.ts";

/** Printable ASCII, for keys and names. */
const PRINTABLE = "^[ -~]*$";

/** A text with an example. `more`: further keywords. */
export const plainText = (description: string, example: string, more: TStringOptions = {}) =>
  Type.String({ description, examples: [example], ...more });

const printable = (maxLength: number, description: string, example: string) =>
  plainText(description, example, { minLength: 1, maxLength, pattern: PRINTABLE });

/** Keywords that only the API description shows: other code enforces them (`test/api/enforced.test.ts`). */
export const DESCRIBED_ONLY = "x-enforced";

export const describedOnly = (words: Readonly<Record<string, unknown>>) => ({ [DESCRIBED_ONLY]: words });

/** http or https, without white space and backslashes. */
const TARGET_URL = String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$`;

/** Allows internationalised names, as people type them. */
const HOST = "^[^\\x00-\\x20/\\x7f-\\xa0]{1,260}$";

/** No control characters and no other line breaks. */
export const ONE_LINE = "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*$";

/** A target's status, or a class such as `5xx`. */
export const RESPONSE_CODE = "^[1-5]([0-9][0-9]|xx)$";

/** Lower case and ASCII only, so that no two names look alike. */
export const CREDENTIAL_NAME = "^[a-z0-9][a-z0-9_.-]{0,62}$";

/** The word in front of a credential in its header. */
export const AUTH_SCHEME = "^[A-Za-z][A-Za-z0-9._-]{0,63}$";

export const BASIC_USERNAME = "^[^:\\x00-\\x1f\\x7f]*$";

export const TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$";

/** A metadata name (`METADATA_NAME_PATTERN`), alone or before a colon. */
export const METADATA_FILTER = "^[A-Za-z0-9_.-]{1,64}(:|$)";

/** The id of a key or a person. */
export const MAKER_ID = "^(?:key|per)_[A-Za-z0-9_-]{1,64}$";

/** Messages by pattern, instead of one that quotes the regular expression. */
export const PATTERN_MESSAGES: ReadonlyMap<string, string> = new Map([
  [
    CREDENTIAL_NAME,
    "Must be 1 to 63 lower-case letters, digits and _ . or -, and begin with a letter or digit, like stripe-live.",
  ],
  [AUTH_SCHEME, "Must be one word that begins with a letter, like Token."],
  [BASIC_USERNAME, "Must not contain a colon or control characters."],
  [TIME_OF_DAY, "Must be a time of day from 00:00 to 24:00, like 09:30."],
  [METADATA_FILTER, "Must be a name of metadata, or name:value, like customer:4711."],
  [MAKER_ID, "Must be the id of a key or person: it begins with key_ or per_."],
  [PRINTABLE, "May hold only printable ASCII characters."],
  [ONE_LINE, "Must be one line without control characters."],
  [HOST, "Must be a host name, with or without a port."],
  [RESPONSE_CODE, "Must be a status such as 422, or a class of them such as 4xx."],
]);

/** A filter by the host of a URL. */
export const hostSchema = (description: string) => plainText(description, "api.example.com", { pattern: HOST });

/** A key that callers choose: `dedupe`, `Idempotency-Key`. */
export const key = (description: string) => printable(KEY_CHARS_MAX, description, "order-4711");

/** A name that people choose, for example for a key. */
export const nameSchema = (description: string) => visible(printable(NAME_CHARS_MAX, description, "ci"));

export const emailSchema = (description: string) =>
  plainText(description, "ann@example.com", { format: "email", maxLength: EMAIL_CHARS_MAX });

/** Text without the characters that a database can't store. */
export const storable = (text: TString) =>
  Type.Refine(text, isStorableText, () => "Must be well-formed Unicode without NUL.");

/** Text by which people recognise something in a list. */
const visible = (text: TString) =>
  Type.Refine(
    text,
    (value) => value === "" || value.trim() !== "",
    () => "Must not be only spaces.",
  );

/** Free text from people and agents: any well-formed Unicode without NUL. */
export const reason = (description: string) =>
  storable(
    plainText(`${description} Well-formed Unicode without NUL.`, "Agreed with Ann.", { maxLength: REASON_CHARS_MAX }),
  );

/** Free text of one line, not empty. */
export const line = (maxLength: number, description: string, example: string) =>
  storable(visible(plainText(description, example, { minLength: 1, maxLength, pattern: ONE_LINE })));

/** The run of an action; a manual retry begins the next one. */
export const run = (description: string) => Type.Integer({ minimum: 1, description, examples: [1] });

export const url = (description: string, example = "https://api.example.com/orders") =>
  plainText(description, example, { format: "uri" });

/** The URL of a target in a request. The format is not enough: `checkTarget` checks it. */
export const targetUrl = (description: string, example = "https://api.example.com/orders") =>
  plainText(description, example, {
    format: "uri",
    ...describedOnly({ maxLength: URL_CHARS_MAX, pattern: TARGET_URL }),
  });

export const choice = <const Value extends string>(
  values: readonly Value[],
  description: string,
  example: Value,
  more: { readonly title?: string; readonly default?: Value } = {},
  // `type` beside `enum`: clients that generate forms from a schema need it.
) => Type.Enum([...values], { type: "string", description, examples: [example], ...more });

/** A member or header with exactly one value. */
export const constant = <const Value extends string | number | boolean>(value: Value, description: string) =>
  Type.Literal(value, { description, examples: [value] });

export const yesNo = (description: string, example: boolean) => Type.Boolean({ description, examples: [example] });

/** A whole number from 0. */
export const quantity = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

export const integer = (
  minimum: number,
  maximum: number,
  description: string,
  example: number,
  more: { readonly default?: number } = {},
) => Type.Integer({ minimum, maximum, description, examples: [example], ...more });

/** A whole number from 1. */
export const positive = (description: string, example: number) =>
  Type.Integer({ minimum: 1, description, examples: [example] });

/** A text in a request: not empty, and at most so many characters. */
export const shortText = (maxLength: number, description: string, example: string) =>
  plainText(description, example, { minLength: 1, maxLength });

/** A list in a request: not empty, and at most so many items. */
export const shortList = <Item extends TSchema>(
  item: Item,
  maxItems: number,
  description: string,
  example: readonly Static<Item>[],
) => Type.Array(item, { minItems: 1, maxItems, description, examples: [[...example]] });

export const pageLimit = (description: string) =>
  integer(1, LIST_LIMIT_MAX, description, 50, { default: LIST_LIMIT_DEFAULT });

export const pageParameters = (cursorExample: string) => ({
  limit: Type.Optional(pageLimit("Most entries of a page.")),
  cursor: Type.Optional(plainText("The next_cursor of the page before.", cursorExample)),
});

/** An id with this prefix. With a title, it becomes a schema of its own in the API description. */
export const idSchema = (prefix: string, description: string, title?: string) =>
  plainText(description, `${prefix}_01kjwa5v00e7v8c9x2m4n6p8qr`, {
    ...(title !== undefined && { title }),
    pattern: `^${prefix}_[A-Za-z0-9_-]{1,64}$`,
  });

export const dateTime = (description: string) =>
  plainText(description, "2026-03-04T12:00:00.000Z", { format: "date-time" });

/** For responses, which always contain the field. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** An object in responses, with its name and sentence in the API description. */
export const answerObject = <Members extends TProperties>(title: string, description: string, members: Members) =>
  Type.Object(members, { title, description });

/** The body of a request. Refuses members that it does not name. */
export const requestObject = <Members extends TProperties>(
  title: string,
  description: string,
  members: Members,
  more: TObjectOptions = {},
) => Type.Object(members, { title, additionalProperties: false, description, ...more });

/** The parameters of a query, or part of a body. Refuses members that it does not name. */
export const closedObject = <Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });

/** An empty body. Refuses any member: a rotation that ignored an origin in the body would replace all secrets. */
export const NoBody = Type.Object(
  {},
  { additionalProperties: false, description: "Empty: path and query say everything." },
);

export const anyObject = (description: string, example: Readonly<Record<string, unknown>> = { order: 7 }) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({ type: "object", description, examples: [example] });

export const stringMap = (description: string, more: Readonly<Record<string, unknown>> = {}) =>
  // Not `Type.Record`: its pattern `^.*$` doesn't check names that contain a newline.
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: "object",
    additionalProperties: { type: "string" },
    description,
    examples: [{ "X-Order": "7" }],
    ...more,
  });

export const keyIdSchema = idSchema("key", "Id of a key.", "KeyId");
