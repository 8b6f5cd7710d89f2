/** @jsxImportSource hono/jsx */
import { HTTP_STATUS } from "../../api/errors.ts";
import { DomainError } from "../../core/domain-error.ts";
import { DAY_MS, NAME_CHARS_MAX } from "../../core/limits.ts";
import { mayDo, type Role, roleViewer } from "../../core/roles.ts";
import { endOfHost } from "../../mail/chat-messages.ts";
import { createRoutes } from "../../http/operation.ts";
import type { RequestContext } from "../../http/request.ts";
import { page, pageHeaders, policyWithForm, seeOther } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { AUTHORIZE_PATH, CONSENT_PATH, SESSION_COOKIE, shownHost } from "../../oauth/names.ts";
import type { ConsentRequest } from "../../oauth/service.ts";
import { Button, CONFIRM_PASSWORD_FIELD } from "../../ui/form.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { day, Facts, Name, Notice, PageHead, sentence, untrusted, actorName } from "../../ui/parts.tsx";
import { filled, type FormState } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { KEY_FORM, keyMembersIn, LimitFields } from "../settings/new-key.tsx";
import type { BridgedResponse } from "../../oauth/bridge.ts";
import { goesOnPage } from "./oidc.tsx";
import { maskedActor } from "../../receipts/masked-action.ts";

/** The end that the form suggests. */
const OAUTH_CONNECTION_DAYS = 90;

/** The defaults of the form: a person must approve every write. */
const NEW_CONNECTION = { hold: "writes", scope: "own", loop_brake: "yes" } as const;

async function consentPage(deps: PageDeps, user: Person, asked: ConsentRequest, path: string, refused?: FormState) {
  const mayConnect = mayDo(user.role, "manage");
  const { name, email } = await deps.accountService.read(user.caller);
  const credentials = mayConnect ? await deps.credentialService.list(user.caller) : [];
  const end = new Date(deps.clock.now().getTime() + OAUTH_CONNECTION_DAYS * DAY_MS);
  // The format of the field: UTC, in minutes.
  const fresh = { ...NEW_CONNECTION, name: keyName(asked), expires_at: end.toISOString().slice(0, 16) };
  const typed = refused ?? filled(fresh);
  return render(
    <Layout title="Connect a client" user={user}>
      <PageHead title="Connect a client" intro={<Asks of={asked} />} />
      <KEY_FORM.Form user={user} action={path} state={typed} class="card" fields={[["role", "agent"]]}>
        <Facts
          rows={[
            ["Client", <ClientName of={asked} />],
            ["Added to this account", asked.added === null ? null : added(asked.added, user.role)],
            ["Its answer goes to", untrusted(asked.redirectUri)],
            ["Account", <Name text={name ?? email ?? user.email} />],
            ["You are", <Name text={user.email} />],
          ]}
        />
        {mayConnect ? (
          <Allowed typed={typed} credentials={credentials.map((one) => one.name)} />
        ) : (
          <Notice tone="wait">
            Your role in this account, {user.role}, doesn't allow you to connect clients. Ask an owner of the account to
            do it.
          </Notice>
        )}
        <div class="buttons">
          {mayConnect ? (
            <Button name="decision" value="allow">
              Connect
            </Button>
          ) : null}
          <Button name="decision" value="deny" look="plain">
            Don't connect
          </Button>
        </div>
      </KEY_FORM.Form>
    </Layout>,
  );
}

function ClientName({ of: { clientName, clientHost } }: { readonly of: ConsentRequest }) {
  const host = <Name text={clientHost} />;
  // The client's own name is less bold than what we know about it.
  const said = <span class="name">{untrusted(clientName ?? "")}</span>;
  return clientName === null ? host : sentence`${said} (${host})`;
}

/** Says who asks. If no owner added the client, its name is its own claim, and we know only the host. */
function Asks({ of: asked }: { readonly of: ConsentRequest }) {
  const check = asked.added === null ? " Check the host: a client can call itself by any name." : "";
  return sentence`${<ClientName of={asked} />} asks to call other services through Outgate, as an agent of yours.${check}`;
}

function added({ by, at }: NonNullable<ConsentRequest["added"]>, role: Role) {
  return sentence`${day(at)} by ${actorName(maskedActor(by, roleViewer(role)))}`;
}

function Allowed({ typed, credentials }: { readonly typed: FormState; readonly credentials: readonly string[] }) {
  return (
    <>
      <p>
        It gets an agent key: it can create actions, read them, and cancel or retry them. It can't approve, and it never
        sees your password or other keys. You can end it at any time on the page Keys.
      </p>
      <KEY_FORM.Field
        state={typed}
        name="name"
        label="Name of its key"
        hint="Shown in lists, in timelines and to approvers."
      />
      <KEY_FORM.Field state={typed} name="hold" label="Which of its calls need approval?" />
      <KEY_FORM.Field state={typed} name="scope" label="Which actions can it manage?" />
      <KEY_FORM.Field state={typed} name="loop_brake" label="Hold loops" />
      <KEY_FORM.Field
        state={typed}
        name="credentials"
        label="Which credentials can it use?"
        boxes={credentials.map((one) => [one, one])}
      />
      <LimitFields
        typed={typed}
        note="A connection lasts at most a year, even without an end. After that, connect again."
      />
    </>
  );
}

/** A name for the key that says where it came from. Of a long host it has the end, because anybody can choose the beginning. */
function keyName({ clientName, clientHost }: ConsentRequest): string {
  const host = endOfHost(clientHost)
    .replace("…", "...")
    .slice(-NAME_CHARS_MAX / 2);
  const name = (clientName ?? "").replaceAll(/[^ -~]/g, "").trim();
  const room = NAME_CHARS_MAX - host.length - " ()".length;
  return name === "" ? host : `${name.slice(0, room)} (${host})`;
}

/** The pages on which people connect a client. They work without script and can't be framed. */
export function connectPages(deps: PageDeps) {
  const { oauth, ruleService } = deps;
  const routes = personPages(deps);
  if (oauth === null) return [routes];

  const consent = async (context: RequestContext, person: Person, uid: string, typed?: FormState) => {
    const asked = await oauth.readConsent(person.caller, uid, context.request.headers);
    const html = await consentPage(deps, person, asked, context.path, typed);
    return { html, headers: { "content-security-policy": policyWithForm(asked.redirectUri) } };
  };

  const decide = deps.answer<{ readonly uid: string }>(
    async ({ context, person, params: { uid }, form }) => {
      const { headers } = context.request;
      const allow = () => {
        const asked = KEY_FORM.check(form, { ...keyMembersIn(form), role: "agent" });
        const { loop_brake: brakesLoops = false, ...request } = asked;
        return oauth.consent(person.caller, uid, headers, request, async (keyId) => {
          if (brakesLoops) await ruleService.brakeLoops(person.caller, keyId);
        });
      };
      const next = await (form.get("decision") === "allow" ? allow() : oauth.refuse(person.caller, uid, headers));
      if (!form.has(CONFIRM_PASSWORD_FIELD)) return next;
      // A page and not a redirect: the password form may only lead to our own pages.
      return page("own", goesOnPage("Connect a client", next, "Go back to the client"));
    },
    async ({ context, person, params: { uid } }, typed) => (await consent(context, person, uid, typed)).html,
  );

  routes
    .get(AUTHORIZE_PATH, async ({ context, person }) => {
      if (isHead(context)) return nothingYet();
      const answer = await oauth.authorize(person.caller, context.search, context.request.headers);
      const location = answer.headers.get("location") ?? "";
      // Asks before it leaves: anybody can publish a document with their own address, and a link to us must not redirect there.
      if (!URL.canParse(location)) return onward(answer);
      return page("own", refusedPage(person, new URL(location)), { status: HTTP_STATUS.invalid_request });
    })
    .get(`${CONSENT_PATH}/:uid`, async ({ context, person, params: { uid } }) => {
      const { html, headers } = await consent(context, person, uid);
      return page("own", html, { headers });
    })
    .post(`${CONSENT_PATH}/:uid`, async ({ context, person, params }) => {
      const answer = await decide({ context, person, params });
      if (answer.status < 400) return answer;
      // Shows the form again.
      const { redirectUri } = await oauth.readConsent(person.caller, params.uid, context.request.headers);
      answer.headers.set("content-security-policy", policyWithForm(redirectUri));
      return answer;
    });
  // Needs no session: the request's cookie says who began it.
  const resume = createRoutes().get(`${AUTHORIZE_PATH}/:uid`, async ({ context, params: { uid } }) => {
    context.page = "own";
    if (isHead(context)) return nothingYet();
    return onward(await oauth.resume(uid, context.request.headers));
  });
  return [routes, resume];
}

/** A HEAD must neither begin nor end a login. */
function isHead({ request }: RequestContext): boolean {
  return request.method === "HEAD";
}

function nothingYet(): Response {
  return new Response(null, { headers: pageHeaders("own") });
}

/** Says that a client's request was refused. The client learns why if the person follows the link. */
function refusedPage(user: Person, back: URL): string {
  const told = new URLSearchParams(back.hash === "" ? back.search : back.hash.slice(1));
  return render(
    <Layout title="Connect a client" user={user}>
      <h1>Connect a client</h1>
      <Notice tone="wait">{problemText(told.get("error_description"))}</Notice>
      <p>
        Nothing was connected.{" "}
        {sentence`${(
          <a href={back.href} rel="noreferrer">
            Go back to the client
          </a>
        )}, at ${untrusted(shownHost(back))}.`}
      </p>
    </Layout>,
  );
}

/** Passes on a redirect of the library with its cookies. Turns any other answer into our error page. */
function onward({ status, headers, body }: BridgedResponse): Response {
  const location = headers.get("location");
  if (status < 300 || status >= 400 || location === null) throw new DomainError("invalid_request", problemIn(body));
  const answer = seeOther("own", location);
  const cookies = headers.getSetCookie().filter((cookie) => !cookie.startsWith(SESSION_COOKIE));
  for (const cookie of cookies) answer.headers.append("set-cookie", cookie);
  return answer;
}

function problemIn(body: string): string {
  const problem: unknown = JSON.parse(body);
  const text =
    typeof problem === "object" && problem !== null && "error_description" in problem
      ? problem.error_description
      : null;
  return `${problemText(typeof text === "string" ? text : null)} Go back to the client and connect again.`;
}

function problemText(text: string | null): string {
  return `The client's request to connect can't be answered${text === null ? "." : `: ${text.replace(/\.?$/, ".")}`}`;
}
