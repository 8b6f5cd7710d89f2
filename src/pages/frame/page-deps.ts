import { HTTP_STATUS } from "../../api/errors.ts";
import { checkFilters } from "../../api/list-schemas.ts";
import type { Check } from "../../api/check.ts";
import type { ExportActions } from "../../actions/export.ts";
import { DAY_MS } from "../../core/limits.ts";
import { DomainError } from "../../core/domain-error.ts";
import { type Caller, roleViewer } from "../../core/roles.ts";
import { type Form, readForm } from "../../http/body.ts";
import { pathAndQuery, type RequestContext } from "../../http/request.ts";
import { page, seeOther } from "../../http/response.ts";
import { createFlash } from "../../http/flash.ts";
import { createPersonRoutes, createSessions, safeNext, type Person, type FindPerson } from "../../http/session.ts";
import { maskedPause } from "../../receipts/masked-action.ts";
import type { AppContext } from "../../runtime/app-context.ts";
import { createOwnTurns } from "../../runtime/fair-share.ts";
import type { RouteServices } from "../../services/services.ts";
import type { NavBadges } from "../../ui/text.ts";
import { answers, EMPTY_FORM } from "./forms.ts";
import { isKeptField, KEPT_NOTE, noteIn } from "./kept-note.ts";
import { logInPage, withNext } from "./log-in.tsx";

/** Failed actions newer than this are counted beside the navigation. */
const NAV_FAILING_MS = DAY_MS;

/** What pages are made with: the services, and what else the HTTP server is made with. */
export interface PageNeeds extends RouteServices, Pick<AppContext, "clock" | "ids" | "log"> {
  readonly exportActions: ExportActions;
  readonly baseUrl: string;
  readonly version: string;
  readonly approvalLinks: "confirm" | "one_click";
  /** Aborted when the service stops. */
  readonly draining: AbortSignal;
}

/** Adds sessions, forms and cookies to what pages need. */
export function createPageDeps(needs: PageNeeds) {
  const sessions = createSessions(needs);
  const flash = createFlash(needs);
  const ownTurn = createOwnTurns();
  /** The person of a session, with what stops their whole account. For forms and errors too. */
  const findSession: FindPerson = async (context) => {
    const person = await sessions.findPerson(context);
    if (person === null) return null;
    // Without a key and a host: only a pause of the whole account.
    const pause = needs.findPause({ accountId: person.caller.accountId, keyId: "", host: "" });
    const stop = maskedPause(pause, roleViewer(person.role));
    return stop === null ? person : { ...person, stop };
  };
  const withNavigation = async (person: Person) => {
    const { caller } = person;
    const [badges, accounts] = await Promise.all([navBadges(needs, caller), needs.sessionService.accountsOf(person)]);
    const shown = { ...person, badges };
    // A single account without a name is not worth showing.
    if (accounts.length === 1 && accounts[0]?.name === null) return shown;
    const isCurrent = (accountId: string) => accountId === caller.accountId;
    return { ...shown, accounts: accounts.map((one) => ({ ...one, isCurrent: isCurrent(one.accountId) })) };
  };
  /** The person with what the navigation shows, if it can be read: a form may have made a secret that only its answer shows. */
  const inNavigation = (person: Person): Promise<Person> => withNavigation(person).catch(() => person);
  /** The person, for `GET` with what the navigation shows. Forms need that only if they show a page, and streams never. */
  const findPerson: FindPerson = async (context) => {
    await ownTurn();
    const person = await findSession(context);
    if (person === null || context.request.method !== "GET") return person;
    const keptNote = flash.read(context, person, KEPT_NOTE);
    return { ...(await withNavigation(person)), ...(keptNote?.person === person.email && { keptNote }) };
  };
  /** The person for the page of an error, which must come whatever else fails. */
  const personOnError: FindPerson = async (context) => {
    const person = await findSession(context).catch(() => null);
    return person && inNavigation(person);
  };
  /** Answers a form with a page. */
  const pageFor = async (person: Person, html: (user: Person) => string | Promise<string>) =>
    page("own", await html(await inNavigation(person)));
  return {
    ...needs,
    ...sessions,
    findSession,
    findPerson,
    personOnError,
    flash,
    pageFor,
    /** The same with a secret; see `showSecretOnce`. */
    showOnce: <Value extends object>(
      person: Person,
      path: string,
      kind: Check<Value>,
      value: Value,
      html: (user: Person, value: Value) => string | Promise<string>,
    ) => flash.showSecretOnce(person, path, kind, value, () => pageFor(person, (user) => html(user, value))),
    answer: answers(sessions.readCheckedForm, inNavigation),
    /** Also allowed if the account is stopped, for what concerns only the person. */
    ownAnswer: answers(sessions.readOwnForm, inNavigation),
    /** For forms that ask for the password themselves. */
    tokenAnswer: answers(sessions.readTokenForm, inNavigation),
  };
}

/** What pages are made with, including sessions, forms and cookies. */
export type PageDeps = ReturnType<typeof createPageDeps>;

/** The counts in the navigation. All are bounded counts over an index, so the size of the table doesn't matter. */
async function navBadges({ actionService, credentialRequests, clock }: PageNeeds, caller: Caller): Promise<NavBadges> {
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
export function personPages(deps: PageDeps, formPages: Readonly<Record<string, string>> = {}) {
  const routes = createPersonRoutes(deps.findPerson, (context) => askToLogIn(deps, context)).onAfterHandle(
    ({ responseValue }) => (typeof responseValue === "string" ? page("own", responseValue) : undefined),
  );
  for (const [path, shown] of Object.entries(formPages)) routes.get(path, () => seeOther("own", shown));
  return routes;
}

/** The login page, which leads back. Its form keeps the note of a decision that nobody made, as the session had ended. */
async function askToLogIn(deps: PageDeps, context: RequestContext): Promise<Response> {
  const next = pathAndQuery(context);
  const form = await formWithNote(deps, context);
  if (form === null) return seeOther("own", withNext("/login", next));
  context.errorCode = "unauthorized";
  const html = await logInPage(deps, safeNext(next), { ...EMPTY_FORM, values: form });
  return page("own", html, { status: HTTP_STATUS.unauthorized });
}

/** The fields that keep a note; null: our pages sent no form with one. */
async function formWithNote({ ownOrigin }: PageDeps, context: RequestContext): Promise<Form | null> {
  if (context.request.method !== "POST") return null;
  try {
    ownOrigin.require(context.request.headers);
    const form = await readForm(context);
    return noteIn(form) === null ? null : new Map([...form].filter(([name]) => isKeptField(name)));
  } catch (error) {
    if (error instanceof DomainError) return null;
    throw error;
  }
}

/** Parameters of a path with an id. */
export interface ById {
  readonly id: string;
}
