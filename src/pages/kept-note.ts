import Type from "typebox";
import { compile } from "../api/schema-helpers.ts";
import { EMAIL_CHARS_MAX, REASON_CHARS_MAX } from "../core/limits.ts";
import type { Form } from "../http/request.ts";
import type { KeptNote } from "../ui/text.ts";

/** Fields of the form of a decision, and of the login that keeps its note. */
const FIELDS: readonly string[] = ["person", "requests", "reason"] satisfies readonly (keyof KeptNote)[];

export const isKeptField = (name: string) => FIELDS.includes(name);

/** The note on its way from the login to the form. */
export const KEPT_NOTE = compile(
  Type.Object({ person: Type.String(), requests: Type.String(), reason: Type.String() }),
);

/** The note in the form of a decision on one request, or in that of a login which keeps it; null if there is none. */
export function noteIn(form: Form): KeptNote | null {
  const [person = "", requests = "", reason = ""] = FIELDS.map((name) => form.get(name));
  const isOne = /^[!-~]{1,400}$/.test(requests);
  const isNote =
    person !== "" &&
    person.length <= EMAIL_CHARS_MAX &&
    isOne &&
    reason.trim() !== "" &&
    reason.length <= 2 * REASON_CHARS_MAX;
  return isNote ? { person, requests, reason } : null;
}
