import type { StartedSession } from "../core/session.ts";
import { emailKey } from "../core/account-store.ts";
import Type from "typebox";
import type { KeyService } from "../accounts/keys.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import { AccountParams } from "../accounts/routes.ts";
import type { PeopleService } from "../accounts/people.ts";
import { checkCredentials } from "../accounts/schemas.ts";
import type { TeamService } from "../accounts/team.ts";
import { InvitationParams, PersonParams, checkRole } from "../accounts/team-routes.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { LINK_NOT_FOUND, showFormAgain } from "../http/errors.ts";
import { createPageRoutes, pathParams } from "../http/operation.ts";
import type { OwnOrigin } from "../http/own-origin.ts";
import { readForm, type RequestContext } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import {
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
import { ACCOUNT_NAME_PATH, accountPage, NAME_FORM } from "./account.tsx";
import { answerForm, type ById, type FormState } from "./forms.tsx";
import { LOG_IN_PATH, SETTINGS_LINK } from "../ui/layout.tsx";
import {
  EMPTY_INVITATION,
  INVITATION_FORM,
  INVITATIONS_PATH,
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
  const { teamService, personOf, formOf, flash } = deps;
  const again = ({ person }: { readonly person: Person }, { problem }: FormState) =>
    peopleHtml(deps, person, { problem });
  /** Who has changed themselves may not see the list any more. */
  const isStillOwner = async (context: RequestContext) => (await personOf(context))?.role === "owner";
  const changeRole = answerForm<ById>(
    formOf,
    async ({ context, person, params: { id }, form }) => {
      const asked = checkRole({ role: form.get("role") ?? null }).role;
      const { email, role } = await teamService.changeRole(person.caller, id, asked);
      const changed: RoleChange = { email, role };
      return (await isStillOwner(context)) ? flash.redirect(person, PEOPLE_PATH, changed) : HOME_PATH;
    },
    again,
    REFUSED,
  );
  const remove = answerForm<ById>(
    formOf,
    async ({ context, person, params: { id } }) => {
      await teamService.remove(person.caller, id);
      return (await isStillOwner(context)) ? PEOPLE_PATH : HOME_PATH;
    },
    again,
    REFUSED,
  );
  const withdraw = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await teamService.withdraw(person.caller, id);
    return PEOPLE_PATH;
  });
  const invite = answerForm(
    formOf,
    async ({ person, form }) => {
      const { email, role } = INVITATION_FORM.check(form);
      const { link, isMailed } = await teamService.invite(person.caller, email, role);
      const invited: Invited = { email, link, isMailed };
      return flash.showSecretOnce(person, INVITED_PATH, invited, () =>
        page("own", invitedPage({ user: person, ...invited })),
      );
    },
    ({ person }, typed) => peopleHtml(deps, person, { typed }),
    REFUSED,
  );
  return createPersonRoutes(personOf)
    .get(PEOPLE_PATH, async ({ context, person }) => {
      // Safe: only the change of a role writes a flash for this path.
      const changed = flash.read(context, person) as RoleChange | null;
      return page("own", await peopleHtml(deps, person, { changed }));
    })
    .post(PEOPLE_PATH, invite)
    .get(INVITED_PATH, ({ context, person }) => {
      // Safe: only `invite` writes a flash for this path.
      const invited = flash.read(context, person) as Invited | null;
      return invited === null ? seeOther("own", PEOPLE_PATH) : page("own", invitedPage({ user: person, ...invited }));
    })
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

const INVITED_PATH = `${PEOPLE_PATH}/invited`;

interface Invited {
  readonly email: string;
  readonly link: string;
  readonly isMailed: boolean;
}

function loginPages(deps: TeamPageDeps) {
  const { teamService, peopleService, personOf, ownFormOf } = deps;
  const again = ({ person }: { readonly person: Person }, { problem }: FormState) =>
    accountHtml(deps, person, { problem });
  const switchTo = answerForm(ownFormOf, async ({ person, form }) => {
    const account = form.get("account") ?? "";
    await teamService.switchTo(person, AccountParams["~standard"].validate({ id: account }).value.id);
    return HOME_PATH;
  });
  const leave = answerForm(
    ownFormOf,
    async ({ person, form }) => {
      if (form.get("sure") !== "yes")
        throw new DomainError("validation_error", "Tick the box to confirm that you leave.");
      await teamService.leave(person);
      // Their session in the account has ended.
      return "/login";
    },
    again,
    REFUSED,
  );
  const rename = answerForm(
    ownFormOf,
    async ({ person, form }) => {
      await peopleService.renameAccount(person.caller, NAME_FORM.check(form).name);
      return LOG_IN_PATH;
    },
    ({ person }, typed) => accountHtml(deps, person, { typed }),
  );
  const end = answerForm(ownFormOf, async ({ person, form }) => {
    const id = form.get("id");
    if (id === undefined) throw new DomainError("validation_error", "Choose which session ends.");
    await teamService.endSessions(person, id === "" ? null : id);
    return LOG_IN_PATH;
  });
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
  more: { readonly problem?: string | null; readonly typed?: FormState; readonly isIndex?: boolean } = {},
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
