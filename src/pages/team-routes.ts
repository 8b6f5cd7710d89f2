import type { StartedSession } from "../core/session.ts";
import { emailKey } from "../core/account-store.ts";
import Type from "typebox";
import type { KeyService } from "../accounts/keys.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import { AccountParams } from "../accounts/routes.ts";
import type { PeopleService } from "../accounts/people.ts";
import { checkAccountName, checkCredentials } from "../accounts/schemas.ts";
import type { TeamService } from "../accounts/team.ts";
import { InvitationParams, PersonParams } from "../accounts/team-routes.ts";
import { checkInvitation, checkRole } from "../accounts/team-schemas.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { LINK_NOT_FOUND, showFormAgain } from "../http/errors.ts";
import { createPageRoutes, pathParams } from "../http/operation.ts";
import type { OwnOrigin } from "../http/own-origin.ts";
import { type Form, readForm, type RequestContext } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import {
  type AnswerById,
  type AnswerPerson,
  createPersonRoutes,
  type Flash,
  type FormOf,
  HOME_PATH,
  type OwnCookie,
  type Person,
  type PersonRouteDeps,
  sourceOf,
} from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { EMPTY_CREDENTIALS } from "../ui/form.tsx";
import { ACCOUNT_NAME_PATH, accountPage } from "./account.tsx";
import { LOG_IN_PATH, SETTINGS_LINK } from "../ui/layout.tsx";
import {
  EMPTY_INVITATION,
  INVITATIONS_PATH,
  type InvitationInput,
  invitedPage,
  joinPage,
  PEOPLE_PATH,
  peoplePage,
  type PeoplePageProps,
  type RoleChange,
} from "./team.tsx";

interface TeamPageDeps extends PersonRouteDeps {
  readonly teamService: TeamService;
  readonly keyService: Pick<KeyService, "ofFormer">;
  readonly peopleService: Pick<PeopleService, "renameAccount">;
  readonly firstSteps: Pick<FirstStepService, "state">;
  readonly flash: Flash;
  readonly clock: Pick<Clock, "now">;
  /** As `formOf`, also where the account is stopped: for what concerns the person alone. */
  readonly ownFormOf: FormOf;
}

/** The page of the account's people, for owners, and of a person's own accounts and sessions. */
export function teamPages(deps: TeamPageDeps) {
  const { teamService, personOf, formOf } = deps;
  const changeRole: AnswerById = async ({ context, person, params: { id } }) => {
    const form = await formOf(context, person);
    const change = () => teamService.changeRole(person.caller, id, checkRole({ role: form.get("role") ?? null }).role);
    return orShown(deps, context, person, change, ({ email, role }): RoleChange => ({ email, role }));
  };
  const remove: AnswerById = async ({ context, person, params: { id } }) => {
    await formOf(context, person);
    return orShown(deps, context, person, () => teamService.remove(person.caller, id));
  };
  const withdraw: AnswerById = async ({ context, person, params: { id } }) => {
    await formOf(context, person);
    await teamService.withdraw(person.caller, id);
    return seeOther("own", PEOPLE_PATH);
  };
  return createPersonRoutes(personOf)
    .get(PEOPLE_PATH, async ({ context, person }) => {
      // Safe: only the change of a role writes a flash for this path.
      const changed = deps.flash.read(context, person) as RoleChange | null;
      return page("own", await peopleHtml(deps, person, { changed }));
    })
    .post(PEOPLE_PATH, invite(deps))
    .get(INVITED_PATH, showInvited(deps))
    .post(`${PEOPLE_PATH}/:id/role`, changeRole, { params: PersonParams })
    .post(`${PEOPLE_PATH}/:id/remove`, remove, { params: PersonParams })
    .post(`${INVITATIONS_PATH}/:id/withdraw`, withdraw, { params: InvitationParams })
    .use(loginPages(deps));
}

async function peopleHtml(
  { teamService, keyService, clock }: TeamPageDeps,
  user: Person,
  { typed = EMPTY_INVITATION, ...more }: Partial<Pick<PeoplePageProps, "typed" | "problem" | "changed">>,
): Promise<string> {
  const { caller } = user;
  const [members, invitations, former] = await Promise.all([
    teamService.list(caller),
    teamService.invitations(caller),
    keyService.ofFormer(caller),
  ]);
  return peoplePage({
    user,
    personId: caller.personId ?? "",
    members,
    invitations,
    former,
    typed,
    now: clock.now(),
    ...more,
  });
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "last_owner"]);

/**
 * Back to the list, which says what `told` makes of the result, or the list with what was wrong. Who has changed themselves
 * may not see it any more.
 */
async function orShown<T>(
  deps: TeamPageDeps,
  context: RequestContext,
  person: Person,
  change: () => Promise<T>,
  told?: (result: T) => object,
): Promise<Response> {
  let result: T;
  try {
    result = await change();
  } catch (error) {
    return showFormAgain(context, error, REFUSED, (problem) => peopleHtml(deps, person, { problem }));
  }
  const now = await deps.personOf(context);
  if (now?.role !== "owner") return seeOther("own", HOME_PATH);
  return told === undefined ? seeOther("own", PEOPLE_PATH) : deps.flash.redirect(person, PEOPLE_PATH, told(result));
}

const INVITED_PATH = `${PEOPLE_PATH}/invited`;

interface Invited {
  readonly email: string;
  readonly link: string;
  readonly isMailed: boolean;
}

function invite(deps: TeamPageDeps): AnswerPerson {
  const { teamService, formOf, flash } = deps;
  return async ({ context, person }) => {
    const form = await formOf(context, person);
    try {
      const { email, role } = checkInvitation({
        email: form.get("email")?.trim() ?? null,
        role: form.get("role") ?? null,
      });
      const { link, isMailed } = await teamService.invite(person.caller, email, role);
      const invited: Invited = { email, link, isMailed };
      return await flash.showSecretOnce(person, INVITED_PATH, invited, () =>
        page("own", invitedPage({ user: person, ...invited })),
      );
    } catch (error) {
      return showFormAgain(context, error, REFUSED, (_problem, refused) =>
        peopleHtml(deps, person, { typed: typedOf(form, refused) }),
      );
    }
  };
}

function typedOf(form: Form, { issues }: DomainError): InvitationInput {
  const [email, role] = ["email", "role"].map((name) => issues.find(({ field }) => field === name));
  return {
    email: form.get("email") ?? "",
    role: form.get("role") ?? null,
    problems: {
      ...(email === undefined
        ? {}
        : { email: OWN_WORDS.test(email.message) ? email.message : "Enter an email address." }),
      ...(role === undefined ? {} : { role: "Choose what they can do." }),
    },
  };
}

/** Of the service, and not of the schema. */
const OWN_WORDS = /account/;

function showInvited({ flash }: TeamPageDeps): AnswerPerson {
  return ({ context, person }) => {
    // Safe: only `invite` writes a flash for this path.
    const invited = flash.read(context, person) as Invited | null;
    return invited === null ? seeOther("own", PEOPLE_PATH) : page("own", invitedPage({ user: person, ...invited }));
  };
}

function loginPages(deps: TeamPageDeps) {
  const { teamService, peopleService, personOf, ownFormOf } = deps;
  const switchTo: AnswerPerson = async ({ context, person }) => {
    const form = await ownFormOf(context, person);
    const account = form.get("account") ?? "";
    await teamService.switchTo(person, AccountParams["~standard"].validate({ id: account }).value.id);
    return seeOther("own", HOME_PATH);
  };
  const leave: AnswerPerson = async ({ context, person }) => {
    const form = await ownFormOf(context, person);
    try {
      if (form.get("sure") !== "yes")
        throw new DomainError("validation_error", "Tick the box to confirm that you leave.");
      await teamService.leave(person);
    } catch (error) {
      return showFormAgain(context, error, REFUSED, (problem) => accountHtml(deps, person, { problem }));
    }
    // Their session in the account has ended.
    return seeOther("own", "/login");
  };
  const rename: AnswerPerson = async ({ context, person }) => {
    const form = await ownFormOf(context, person);
    const typed = (form.get("name") ?? "").trim();
    try {
      await peopleService.renameAccount(person.caller, checkAccountName({ name: typed }).name);
    } catch (error) {
      return showFormAgain(context, error, REFUSED, (problem) =>
        accountHtml(deps, person, { problem, typedName: typed }),
      );
    }
    return seeOther("own", LOG_IN_PATH);
  };
  const end: AnswerPerson = async ({ context, person }) => {
    const id = (await ownFormOf(context, person)).get("id") ?? null;
    if (id === null) throw new DomainError("validation_error", "Choose which session ends.");
    await teamService.endSessions(person, id === "" ? null : id);
    return seeOther("own", LOG_IN_PATH);
  };
  return createPersonRoutes(personOf)
    .get(SETTINGS_LINK.href, async ({ person }) => page("own", await accountHtml(deps, person, { isIndex: true })))
    .get(LOG_IN_PATH, async ({ person }) => page("own", await accountHtml(deps, person)))
    .post(`${LOG_IN_PATH}/account`, switchTo)
    .post(ACCOUNT_NAME_PATH, rename)
    .post(`${LOG_IN_PATH}/leave`, leave)
    .post(`${LOG_IN_PATH}/sessions`, end);
}

async function accountHtml(
  { teamService, firstSteps, clock }: TeamPageDeps,
  user: Person,
  more: { readonly problem?: string; readonly typedName?: string; readonly isIndex?: boolean } = {},
): Promise<string> {
  const [accounts, sessions, { isHidden, isOver }] = await Promise.all([
    teamService.accountsOf(user),
    teamService.sessions(user),
    firstSteps.state(user.caller),
  ]);
  const { accountId } = user.caller;
  const hasHiddenSteps = isHidden && !isOver;
  return accountPage({ user, accounts, accountId, sessions, hasHiddenSteps, now: clock.now(), ...more });
}

interface JoinPageDeps extends Pick<TeamPageDeps, "teamService" | "personOf" | "ownFormOf"> {
  readonly ownOrigin: OwnOrigin;
  readonly deviceCookie: OwnCookie;
  readonly oidc: { readonly name: string } | null;
  /** Lets somebody in by an answer. */
  readonly startSession: (context: RequestContext, entered: StartedSession, answer: Response) => Response;
}

/** The path contains the token, so search engines must not index it. */
const UNLISTED = { "x-robots-tag": "noindex, nofollow, noarchive" } as const;

const TokenParams = pathParams(Type.Object({ token: Type.String() }), LINK_NOT_FOUND);

const CORRECTABLE: ReadonlySet<ErrorCode> = new Set([
  "validation_error",
  "invalid_credentials",
  "rate_limited",
  "unavailable",
  "forbidden",
]);

/** The links of invitations. GET changes nothing, since mail scanners and previews open links. */
export function joinPages(deps: JoinPageDeps) {
  const { teamService, personOf, ownFormOf, ownOrigin, startSession } = deps;
  const hooks = { params: TokenParams };
  const htmlOf = async (context: RequestContext, token: string, problem: string | null) => {
    const [invitation, user] = await Promise.all([teamService.findInvitation(token), personOf(context)]);
    const isOwn = user !== null && emailKey(user.email) === emailKey(invitation.email);
    const typed = { ...EMPTY_CREDENTIALS, message: problem };
    return joinPage({ ...invitation, path: `/join/${token}`, typed, user, isOwn, provider: deps.oidc?.name ?? null });
  };
  return createPageRoutes("own")
    .get(
      "/join/:token",
      async ({ context, params: { token } }) => page("own", await htmlOf(context, token, null), { headers: UNLISTED }),
      hooks,
    )
    .post(
      "/join/:token",
      async ({ context, params: { token } }) => {
        ownOrigin.require(context.request.headers);
        const person = await personOf(context);
        // Outside of the `try`: it may ask for the password.
        const form = person === null ? await readForm(context) : await ownFormOf(context, person);
        try {
          if (person !== null) {
            await teamService.joinAs(token, person);
            return seeOther("own", HOME_PATH);
          }
          const { email } = await teamService.findInvitation(token);
          const { password } = checkCredentials({ email, password: form.get("password") ?? null });
          const entered = await teamService.joinByPassword(token, password, sourceOf(context, deps, form));
          return startSession(context, entered, seeOther("own", HOME_PATH));
        } catch (error) {
          return showFormAgain(context, error, CORRECTABLE, (problem) => htmlOf(context, token, problem));
        }
      },
      hooks,
    );
}
