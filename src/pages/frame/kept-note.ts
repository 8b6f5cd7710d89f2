import Type from "typebox";
import { compile } from "../../api/check.ts";
import { EMAIL_CHARS_MAX, REASON_CHARS_MAX } from "../../core/limits.ts";
import type { Form } from "../../http/body.ts";
import type { KeptNote } from "../../ui/text.ts";
import { seeOther } from "../../http/response.ts";
import type { createFlash } from "../../http/flash.ts";
import type { StartedSession } from "../../core/session.ts";

type Flash = ReturnType<typeof createFlash>;

/** Fields of the form of a decision, and of the login that keeps its note. */
const FIELDS: readonly string[] = ["person", "requests", "reason"] satisfies readonly (keyof KeptNote)[];

export const isKeptField = (name: string) => FIELDS.includes(name);

/** The note on its way from the login to the form. */
export const NoteMembers = Type.Object({ person: Type.String(), requests: Type.String(), reason: Type.String() });

export const KEPT_NOTE = compile(NoteMembers);

/** Leads from a login to a path, which shows the note in its form. */
export function landOn(
  flash: Pick<Flash, "redirect">,
  to: string,
  { person }: StartedSession,
  note: KeptNote | null,
): Response {
  if (note === null) return seeOther("own", to);
  const [path = ""] = to.split("?");
  const answer = flash.redirect(person, path, KEPT_NOTE, note);
  answer.headers.set("location", to);
  return answer;
}

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
