import { errorHeaders, HTTP_STATUS, issuesText } from "../../api/errors.ts";
import { DomainError, type ErrorCode, type Issue } from "../../core/domain-error.ts";
import type { Form } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { page, seeOther } from "../../http/response.ts";

export interface FormState {
  readonly values: Form;
  /** What is wrong with fields. */
  readonly issues: readonly Issue[];
  /** Everything that is wrong, in one text; null if nothing is. */
  readonly problem: string | null;
  /** The error's code; null if the form was not refused. */
  readonly code: ErrorCode | null;
}

export interface RefusedForm extends FormState {
  readonly problem: string;
  readonly code: ErrorCode;
}

export const EMPTY_FORM: FormState = { values: new Map(), issues: [], problem: null, code: null };

export function filled(values: Readonly<Record<string, string>>): FormState {
  return { ...EMPTY_FORM, values: new Map(Object.entries(values)) };
}

/** What is wrong with a field or a part of its value; null if nothing. */
export function fieldProblem({ issues }: FormState, name: string): string | null {
  return issues.find((issue) => isAbout(issue, name))?.message ?? null;
}

/** What is wrong besides these fields, which show their own problems; null if nothing. */
export function problemBeside({ issues, problem }: FormState, names: readonly string[]): string | null {
  if (issues.length === 0) return problem;
  const others = issues.filter((issue) => !names.some((name) => isAbout(issue, name)));
  return issuesText(others) || null;
}

/** Whether an issue is about this field or a part of its value. */
export function isAbout({ field }: Issue, name: string): boolean {
  return field === name || field.startsWith(`${name}.`);
}

/** The version of what a form shows, because another person may have changed it since. */
export const VERSION_FIELD = "version";

/**
 * The hidden field of the version. A form that is refused for another reason, or only tried, keeps the one that it was opened with, or
 * sending it again would replace what nobody has said was changed.
 */
export function versionField(state: FormState, now: string | number): readonly [string, string | number] {
  const opened = fieldProblem(state, VERSION_FIELD) === null ? state.values.get(VERSION_FIELD) : undefined;
  return [VERSION_FIELD, opened ?? now];
}

/** Identifies a form, so that one that is sent twice acts once. */
export function formIdField(id: string): readonly [name: string, value: string] {
  return ["form_id", id];
}

/** Null if a form has none, or one that is not ours. */
export function formIdIn(form: Form): string | null {
  const id = form.get("form_id") ?? "";
  return FORM_ID.test(id) ? id : null;
}

const FORM_ID = /^req_[0-9a-z]{1,64}$/;

interface FormRequest<Params, Who> {
  readonly context: RequestContext;
  readonly person: Who;
  readonly params: Params;
}

export interface PersonRequest<Params, Who> extends FormRequest<Params, Who> {
  readonly form: Form;
}

/** Renders the page of a form again, with what was typed and what is wrong. */
export type Again<Params, Who> = (asked: PersonRequest<Params, Who>, refused: RefusedForm) => string | Promise<string>;

/**
 * Answers forms that `readCheckedForm` reads. It also checks who sent them, unless a form begins a session or comes from a link. `act`
 * does what a form asks for and returns the next path, or a response. If it refuses, `again` renders the form's page. If that
 * fails too, for example because something is gone, the person gets an error page. `shown` adds what its navigation shows.
 */
export function answers<Who>(
  readCheckedForm: (context: RequestContext, person: Who) => Promise<Form>,
  shown = (person: Who): Who | Promise<Who> => person,
) {
  return <Params = unknown>(
    act: (asked: PersonRequest<Params, Who>) => Promise<Response | string>,
    again?: Again<Params, Who>,
    forbidden: "elsewhere" | "here" = "elsewhere",
  ) =>
    async ({ context, person, params }: FormRequest<Params, Who>): Promise<Response> => {
      // Outside of the `try`, because it may ask for the password.
      const form = await readCheckedForm(context, person);
      const asked = { context, person, params, form };
      try {
        const done = await act(asked);
        return typeof done === "string" ? seeOther("own", done) : done;
      } catch (error) {
        if (again === undefined || !(error instanceof DomainError)) throw error;
        // The page may show no form to people who may not send it, and so have no place for the error.
        if (error.code === "forbidden" && forbidden === "elsewhere") throw error;
        const { code, issues, message } = error;
        const problem = issuesText(issues) || message;
        const html = await again({ ...asked, person: await shown(person) }, { values: form, issues, problem, code });
        context.errorCode = code;
        return page(context.page ?? "own", html, { status: HTTP_STATUS[code], headers: errorHeaders(error) });
      }
    };
}

/** Ignores that somebody else has removed it already. */
export async function unlessGone(removed: Promise<unknown>): Promise<void> {
  await removed.catch((error: unknown) => {
    if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
  });
}
