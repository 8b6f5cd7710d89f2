import Type from "typebox";
import { ERROR_CODES } from "../core/domain-error.ts";
import { answerObject, choice, constant, plainText, positive } from "./schema-helpers.ts";

// Not in `errors.ts`, which the service imports before it listens: TypeBox takes a tenth of a second to load.

const ValidationIssue = answerObject("ValidationIssue", "One thing that is wrong with a request.", {
  field: plainText("The field, header or query parameter; empty for the whole body.", "retries"),
  message: plainText("What is wrong with it.", "Must be an integer."),
  code: constant("invalid", "Always invalid."),
});

const Code = choice(ERROR_CODES, "Error code, for programs.", "validation_error", { title: "ErrorCode" });

export const ErrorEnvelopeJson = answerObject("ErrorEnvelope", "The body of every error.", {
  error: Type.Object(
    {
      code: Code,
      message: plainText("What went wrong and what to do, for people.", "The request has fields that are not valid."),
      request_id: plainText("Identifies this request in the service's log.", "req_01kjwa5v00e7v8c9x2m4n6p8qr", {
        pattern: "^req_[A-Za-z0-9_-]+$",
      }),
      details: Type.Optional(
        Type.Array(ValidationIssue, { description: "The problems of the request, as far as they fit in an answer." }),
      ),
      details_left_out: Type.Optional(positive("How many further problems there are.", 12)),
    },
    { description: "The error." },
  ),
});
