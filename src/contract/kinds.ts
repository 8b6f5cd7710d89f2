import Type from "typebox";
import { EMAIL_CHARS_MAX, KEY_CHARS_MAX, REASON_CHARS_MAX } from "../domain/limits.ts";
import { isStorableText } from "../domain/json.ts";

/** Text of ours: no control character gets into it (hostile 1). */
const PRINTABLE = /^[ -~]*$/;
/** A key of a caller's own: `dedupe`, `Idempotency-Key` (decisions 3). */
export const key = (description: string) =>
  Type.Refine(
    Type.String({ minLength: 1, maxLength: KEY_CHARS_MAX, description }),
    (text) => PRINTABLE.test(text),
    () => "May hold only printable ASCII characters.",
  );

export const email = (description: string) => Type.String({ format: "email", maxLength: EMAIL_CHARS_MAX, description });

/** Free text of people and agents: any Unicode that can be stored and shown. */
export const reason = (description: string) =>
  Type.Refine(
    Type.String({ maxLength: REASON_CHARS_MAX, description }),
    isStorableText,
    () => "Must be well-formed Unicode without NUL.",
  );

/** Where calls go; judged by `Targets`, which knows more than a format. */
export const url = (description: string) => Type.String({ format: "uri", description });

export const dateTime = (description: string) => Type.String({ format: "date-time", description });

/** Null where there is no value: in answers, which always have the member. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A JSON object of which nothing is ours. */
export const anyObject = (description: string) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({ type: "object", description });

export const stringMap = (description: string) =>
  // Not `Type.Record`: its pattern `^.*$` lets a name with a newline in it go unchecked.
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: "object",
    additionalProperties: { type: "string" },
    description,
  });
