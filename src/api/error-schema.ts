import Type from "typebox";
import { ERROR_CODES } from "../core/domain-error.ts";
import { plainText, answerObject } from "./schema-helpers.ts";

// Apart from `errors.ts`, which the start of the service imports before it listens: TypeBox takes a tenth of a second.

const ValidationIssue = answerObject("ValidationIssue", "One thing that is wrong with a request.", {
  field: plainText("The field, header or query parameter; empty for the whole body.", "retries"),
  message: plainText("What is wrong with it.", "Must be an integer."),
  code: Type.Literal("invalid", { description: "Always invalid.", examples: ["invalid"] }),
});

const Code = Type.Enum([...ERROR_CODES], {
  title: "ErrorCode",
  type: "string",
  description: "Error code, for programs.",
  examples: ["validation_error"],
});

export const ErrorEnvelope = answerObject("ErrorEnvelope", "The body of every error.", {
  error: Type.Object(
    {
      code: Code,
      message: plainText("What went wrong and what to do, for people.", "The request has fields that are not valid."),
      request_id: Type.String({
        pattern: "^req_[A-Za-z0-9_-]+$",
        description: "Identifies this request in the service's log.",
        examples: ["req_01kjwa5v00e7v8c9x2m4n6p8qr"],
      }),
      details: Type.Optional(Type.Array(ValidationIssue, { description: "Every problem of the request." })),
    },
    { description: "The error." },
  ),
});
