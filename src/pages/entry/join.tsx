/** @jsxImportSource hono/jsx */
import { emailKey } from "../../core/account-store.ts";
import type { OpenInvitation } from "../../accounts/invitations.ts";
import type { Person } from "../../core/session.ts";
import { createPageRoutes, TokenParams } from "../../http/operation.ts";
import { readForm } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { page, seeOther, UNLISTED } from "../../http/response.ts";
import { HOME_PATH, requestSource } from "../../http/session.ts";
import { Button, PostForm, Submit } from "../../ui/form.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { PageHead, Problem, sentence, untrusted } from "../../ui/parts.tsx";
import { answers, EMPTY_FORM, type FormState } from "../frame/forms.ts";
import type { PageDeps } from "../frame/page-deps.ts";
import { EntryForm, LOG_IN_FORM, ProviderForm } from "../frame/log-in.tsx";
import { type PageUser, roleLabel } from "../../ui/text.ts";

interface JoinProps extends OpenInvitation {
  readonly path: string;
  readonly state: FormState;
  /** Null if nobody is logged in. */
  readonly user: PageUser | null;
}

async function joinPage(deps: PageDeps, context: RequestContext, token: string, state: FormState) {
  const [invitation, user] = await Promise.all([deps.invitationService.find(token), deps.findPerson(context)]);
  const { email, role, account } = invitation;
  const path = `/join/${token}`;
  return render(
    <Layout title="Join an account" width="narrow" user={user} beginsSession={user === null}>
      <PageHead title="Join an account">
        <p>
          You are invited as <b>{roleLabel(role).toLowerCase()}</b>
          <InvitedTo account={account} />.
        </p>
        <p class="quiet">The invitation is for {untrusted(email)} and works once.</p>
      </PageHead>
      <JoinForm {...invitation} path={path} state={state} user={user} />
      {user === null ? <ProviderForm oidc={deps.oidc} next={path} /> : null}
    </Layout>,
  );
}

/** Names the account. Quotes its name, which its people chose, beside its address. */
function InvitedTo({ account: { name, email } }: Pick<OpenInvitation, "account">) {
  return (
    <>
      {name === null ? null : sentence` to “${untrusted(name)}”`}
      {email === null ? null : (
        <>
          {name === null ? " to the account of " : ", the account of "}
          {untrusted(email)}
        </>
      )}
    </>
  );
}

function JoinForm({ path, state, user, email, isKnown }: JoinProps) {
  if (user !== null && emailKey(user.email) !== emailKey(email)) {
    return (
      <PostForm user={user} action="/auth/logout" class="card">
        <p>You are logged in as {untrusted(user.email)}. Log out, and open the link again.</p>
        <Button>Log out</Button>
      </PostForm>
    );
  }
  if (user !== null) {
    return (
      <PostForm user={user} action={path} class="card">
        <Problem text={state.problem} />
        <Submit cancel="/">Join</Submit>
      </PostForm>
    );
  }
  return (
    <EntryForm
      action={path}
      state={state}
      isNew={!isKnown}
      knownEmail={email}
      button={isKnown ? "Log in and join" : "Create login and join"}
    >
      {isKnown ? <p class="quiet">This address already has a login. Log in to join.</p> : null}
    </EntryForm>
  );
}

/** The links of invitations. A GET changes nothing, because mail scanners and previews open links. */
export function joinPages(deps: PageDeps) {
  const { invitationService, findPerson, readOwnForm, ownOrigin, startSession } = deps;
  const hooks = { params: TokenParams };
  const join = answers((context, person: Person | null) =>
    person === null ? readForm(context) : readOwnForm(context, person),
  )<{ readonly token: string }>(
    async ({ context, person, params: { token }, form }) => {
      if (person !== null) {
        await invitationService.joinAs(token, person);
        return HOME_PATH;
      }
      const { email } = await invitationService.find(token);
      const { password } = LOG_IN_FORM.check(form, { email });
      const entered = await invitationService.joinByPassword(token, password, requestSource(context, deps, form));
      return startSession(context, entered, seeOther("own", HOME_PATH));
    },
    ({ context, params: { token } }, typed) => joinPage(deps, context, token, typed),
    // The invitation is for another address.
    "here",
  );
  return createPageRoutes("own")
    .get(
      "/join/:token",
      async ({ context, params: { token } }) =>
        page("own", await joinPage(deps, context, token, EMPTY_FORM), { headers: UNLISTED }),
      hooks,
    )
    .post(
      "/join/:token",
      async ({ context, params }) => {
        ownOrigin.require(context.request.headers);
        return join({ context, params, person: await findPerson(context) });
      },
      hooks,
    );
}
