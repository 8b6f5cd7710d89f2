import type { Person } from "../accounts/person.ts";
import type { Presence, Stay } from "../accounts/presence.ts";
import type { Resume } from "../accounts/resume.ts";
import { accountStopped } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { clientOf } from "./client.ts";
import type { OwnCookie } from "./cookie.ts";
import { type Form, readForm } from "./form.ts";
import type { OwnOrigin } from "./own-origin.ts";
import type { Visit } from "./visit.ts";

export type { Person };

/** Who visits, by the session's cookie; null: nobody who is logged in. Under /v1 and /mcp nobody asks. */
export type PersonOf = (visit: Visit) => Promise<Person | null>;

/** The same for an answer that goes on, and that has to hear of the session's end. */
export type StayOf = (visit: Visit) => Promise<Stay | null>;

/**
 * The form of a page that changes something for whoever is logged in. Throws `forbidden` unless our own page sent it
 * within this very session: it has a field `form_token` with the person's; and where their account is stopped.
 */
export type FormOf = (visit: Visit, person: Person) => Promise<Form>;

export interface SessionDeps {
  readonly resume: Resume;
  readonly cookie: OwnCookie;
  readonly ownOrigin: OwnOrigin;
  /** Whether an account is stopped: its people may look, and change nothing. */
  readonly isStopped: (accountId: string) => boolean;
}

/** What every page for people asks first. Whoever is found is written down in the visit, for its log line. */
export function createPersonOf({ resume, cookie }: Pick<SessionDeps, "resume" | "cookie">): PersonOf {
  return async (visit) => {
    const token = cookie.read(visit.request.headers);
    const resumed = token === null ? null : await resume(token);
    if (resumed === null) return null;
    const person = { ...resumed, caller: { ...resumed.caller, client: clientOf(visit) } };
    visit.caller = person.caller;
    return person;
  };
}

export function createStayOf({ stay, cookie }: Pick<Presence, "stay"> & Pick<SessionDeps, "cookie">): StayOf {
  return async (visit) => {
    const token = cookie.read(visit.request.headers);
    const staying = token === null ? null : await stay(token);
    if (staying !== null) visit.caller = staying.caller;
    return staying;
  };
}

export function createFormOf({ ownOrigin, isStopped }: Pick<SessionDeps, "ownOrigin" | "isStopped">): FormOf {
  return async (visit, person) => {
    ownOrigin.require(visit.request.headers);
    const form = await readForm(visit);
    checkFormToken(form, person);
    const { accountId } = person.caller;
    if (isStopped(accountId)) throw accountStopped(accountId);
    return form;
  };
}

/** Throws `forbidden` unless the form was made for this session: a page of before the last log-in is one of another. */
export function checkFormToken(form: Form, person: Person): void {
  if (isSame(form.get("form_token") ?? "", person.formToken)) return;
  throw new DomainError("forbidden", "This page is from before you logged in. Load it again and repeat what you did.");
}

/** Where a person logs in and comes back from. `next` is a path of ours. */
export function logInPath(next: string): string {
  return `/login?${new URLSearchParams({ next }).toString()}`;
}

/** In the same time wherever they differ. */
function isSame(given: string, right: string): boolean {
  let difference = given.length ^ right.length;
  for (let at = 0; at < right.length; at += 1) difference |= given.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
