import { headersOf, HTTP_STATUS } from "../api/errors.ts";
import { NAV_FAILING_MS } from "../core/limits.ts";
import { type Caller, viewerOf } from "../core/roles.ts";
import { checkFilters } from "../api/list-schemas.ts";
import { DomainError, type ErrorCode, type Issue } from "../core/domain-error.ts";
import type { Form, RequestContext } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { createFlash, createPersonRoutes, createSessions, type PersonOf } from "../http/session.ts";
import { maskedPause } from "../receipts/masked-action.ts";
import type { NavBadges } from "../ui/text.ts";
import type { ExportActions } from "../actions/export.ts";
import type { ApiOperation } from "../http/openapi.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { RouteServices } from "../services/services.ts";
import type { GuideGroup } from "./docs/guides.ts";

/** What pages are made with: the services, and what else the HTTP server is made with. */
export interface PageNeeds extends RouteServices, Pick<AppContext, "clock" | "ids" | "log"> {
  readonly exportActions: ExportActions;
  readonly baseUrl: string;
  readonly version: string;
  readonly approvalLinks: "confirm" | "one_click";
  /** The documentation. Its first guide is the page /docs. */
  readonly guides: readonly GuideGroup[];
  /** The operations for the API reference. */
  readonly operations: () => readonly ApiOperation[];
  /** Aborted when the service stops. */
  readonly draining: AbortSignal;
}

/** Adds sessions, forms and cookies to what pages need. */
export function createPageDeps(needs: PageNeeds) {
  const sessions = createSessions(needs);
  /** The person of a session, with what stops their whole account. For forms and errors too. */
  const sessionOf: PersonOf = async (context) => {
    const person = await sessions.personOf(context);
    if (person === null) return null;
    // Without a key and a host: only a pause of the whole account.
    const pause = needs.pauseOf({ accountId: person.caller.accountId, keyId: "", host: "" });
    const stop = maskedPause(pause, viewerOf(person.role));
    return stop === null ? person : { ...person, stop };
  };
  /** The person with what the navigation shows. Forms and streams don't need that. */
  const personOf: PersonOf = async (context) => {
    const person = await sessionOf(context);
    if (person === null || context.request.method !== "GET") return person;
    const { caller } = person;
    const [badges, accounts] = await Promise.all([badgesOf(needs, caller), needs.teamService.accountsOf(person)]);
    // A single account without a name is not worth showing.
    if (accounts.length === 1 && accounts[0]?.name === null) return { ...person, badges };
    const isCurrent = (accountId: string) => accountId === caller.accountId;
    return { ...person, badges, accounts: accounts.map((one) => ({ ...one, isCurrent: isCurrent(one.accountId) })) };
  };
  const answer = answers(sessions.formOf);
  return { ...needs, ...sessions, sessionOf, personOf, answer, flash: createFlash(needs) };
}

/** The counts in the navigation. All are bounded counts over an index, so the size of the table doesn't matter. */
async function badgesOf({ actionService, credentialRequests, clock }: PageNeeds, caller: Caller): Promise<NavBadges> {
  const createdAfter = new Date(clock.now().getTime() - NAV_FAILING_MS);
  const [waiting, failing, asked] = await Promise.all([
    actionService.counts(caller, { ...checkFilters({}), statuses: ["awaiting_approval"] }),
    actionService.counts(caller, { ...checkFilters({}), statuses: ["failed"], createdAfter }),
    credentialRequests.pending(caller),
  ]);
  const none = { count: 0, isMore: false };
  const held = waiting.counts[0] ?? none;
  return { waiting: { ...held, count: held.count + asked.length }, failing: failing.counts[0] ?? none };
}

/**
 * Routes for people who are logged in. A text that a handler returns is the HTML of its page. A refused form leaves the browser
 * at the form's path: if people reload that, they get to the page that `formPages` names for it.
 */
export function personPages({ personOf }: PageDeps, formPages: Readonly<Record<string, string>> = {}) {
  const routes = createPersonRoutes(personOf).onAfterHandle(({ responseValue }) =>
    typeof responseValue === "string" ? page("own", responseValue) : undefined,
  );
  for (const [path, shown] of Object.entries(formPages)) routes.get(path, () => seeOther("own", shown));
  return routes;
}

export interface FormState {
  readonly values: Form;
  /** What is wrong with fields. */
  readonly issues: readonly Issue[];
  /** Everything that is wrong, in one text; null if nothing is. */
  readonly problem: string | null;
}

/** A refused form, with the error's code. */
export interface RefusedForm extends FormState {
  readonly problem: string;
  readonly code: ErrorCode;
}

export const EMPTY_FORM: FormState = { values: new Map(), issues: [], problem: null };

export function filled(values: Readonly<Record<string, string>>): FormState {
  return { ...EMPTY_FORM, values: new Map(Object.entries(values)) };
}

/** What is wrong with a field or a part of its value; null if nothing. */
export function problemOf({ issues }: FormState, name: string): string | null {
  return issues.find((issue) => isAbout(issue, name))?.message ?? null;
}

/** What is wrong besides these fields, which show their own problems; null if nothing. */
export function problemBeside({ issues, problem }: FormState, names: readonly string[]): string | null {
  if (issues.length === 0) return problem;
  const others = issues.filter((issue) => !names.some((name) => isAbout(issue, name)));
  return others.map(({ message }) => message).join(" ") || null;
}

function isAbout({ field }: Issue, name: string): boolean {
  return field === name || field.startsWith(`${name}.`);
}

/** A number, if the text is one that can be read exactly. Any other text stays, and the check refuses it. */
export function numberIn(text: string): number | string {
  const [, digits = "", decimals = ""] = /^0*(\d{1,16})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  const value = Number(text);
  const exact = decimals === "" ? digits : `${digits}.${decimals}`;
  return digits !== "" && value.toFixed(decimals.length) === exact ? value : text;
}

/** Parameters of a path with an id. */
export interface ById {
  readonly id: string;
}

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
 * Answers forms that `formOf` reads. It also checks who sent them, unless a form begins a session or comes from a link. `act`
 * does what a form asks for and returns the next path, or a response. If it refuses, `again` renders the form's page. If that
 * fails too, for example because something is gone, the person gets an error page.
 */
export function answers<Who>(formOf: (context: RequestContext, person: Who) => Promise<Form>) {
  return <Params = unknown>(
    act: (asked: PersonRequest<Params, Who>) => Promise<Response | string>,
    again?: Again<Params, Who>,
    forbidden: "elsewhere" | "here" = "elsewhere",
  ) =>
    async ({ context, person, params }: FormRequest<Params, Who>): Promise<Response> => {
      // Outside of the `try`, because it may ask for the password.
      const form = await formOf(context, person);
      const asked = { context, person, params, form };
      try {
        const done = await act(asked);
        return typeof done === "string" ? seeOther("own", done) : done;
      } catch (error) {
        if (again === undefined || !(error instanceof DomainError)) throw error;
        // The page may show no form to people who may not send it, and so have no place for the error.
        if (error.code === "forbidden" && forbidden === "elsewhere") throw error;
        const { code, issues, message } = error;
        const problem = issues.map((issue) => issue.message).join(" ") || message;
        const html = await again(asked, { values: form, issues, problem, code });
        context.errorCode = code;
        return page(context.page ?? "own", html, { status: HTTP_STATUS[code], headers: headersOf(error) });
      }
    };
}

/** Ignores that somebody else has removed it already. */
export async function unlessGone(removed: Promise<unknown>): Promise<void> {
  await removed.catch((error: unknown) => {
    if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
  });
}

/** What pages are made with, including sessions, forms and cookies. */
export type PageDeps = ReturnType<typeof createPageDeps>;
