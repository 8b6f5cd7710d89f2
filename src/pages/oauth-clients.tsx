/** @jsxImportSource hono/jsx */
import { DomainError } from "../core/domain-error.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import type { AccountClient } from "../oauth/account-clients.ts";
import { OAuthClientParams } from "../oauth/client-routes.ts";
import { CreateOAuthClient } from "../oauth/schemas.ts";
import { Copied, EmptyState } from "../ui/controls.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import { Ago, Facts, LinkButton, Name, Notice, Problem, UntrustedText } from "../ui/parts.tsx";
import { type Choice, number } from "../ui/text.ts";
import {
  answerForm,
  type ById,
  EMPTY_FORM,
  type FormState,
  problemBeside,
  schemaForm,
  StatedChoices,
  unlessGone,
} from "./forms.tsx";
import type { PageDeps } from "./needs.ts";
import { AddForm, List, None, RowAction, SETTINGS_PATHS, settingsFrame } from "./settings-frame.tsx";
import { ActorName } from "./timeline.tsx";

const CLIENTS_PATH = SETTINGS_PATHS.oauthClients;

const FORM = schemaForm(CreateOAuthClient);

const TYPE_WORDS = { public: "Public", confidential: "Confidential" } as const;

const TYPE_CHOICES: readonly Choice[] = [
  { value: "confidential", label: TYPE_WORDS.confidential, hint: "A server. It gets a secret." },
  { value: "public", label: TYPE_WORDS.public, hint: "A program on somebody’s machine, or in a browser. No secret." },
];

type OAuthClientPageDeps = Pick<
  PageDeps,
  "personOf" | "formOf" | "oauth" | "oauthClients" | "flash" | "baseUrl" | "clock"
>;

async function clientsPage(
  { oauth, oauthClients, clock }: OAuthClientPageDeps,
  user: Person,
  typed: FormState,
): Promise<string> {
  const clients = await oauthClients.list(user.caller);
  const now = clock.now();
  return settingsFrame({
    user,
    section: "OAuth clients",
    title: "OAuth clients",
    intro: (
      <>
        Clients that people of this account can connect by logging in. You need none for claude.ai, ChatGPT and other
        clients that describe themselves. <a href="/docs/connect">Connect by log-in</a>
      </>
    ),
    now,
    children: (
      <>
        {oauth === null ? (
          <Notice tone="wait">OAuth is off on this server, so no client can log in. The setting is OAUTH.</Notice>
        ) : null}
        <List
          title="OAuth clients"
          rows={clients}
          columns={[
            ["Client", (one) => <Client of={one} now={now} />, "main"],
            ["Client id", ({ id }) => <Copied text={id} what="client id" />, "wide"],
            ["Answers go to", ({ redirectUris }) => <Redirects of={redirectUris} />, "wide"],
            ["Connections", ({ connections }) => (connections === 0 ? <None>None</None> : number(connections))],
          ]}
          actions={({ id, name }) => (
            <RowAction user={user} path={`${CLIENTS_PATH}/${id}/remove`} of={name} name="Delete" />
          )}
          empty={
            <EmptyState icon="external" title="No clients yet">
              <p>Add one for software that asks you for a client id.</p>
            </EmptyState>
          }
        />
        {clients.length === 0 ? null : (
          <p class="quiet small">Deleting a client ends its connections: their keys are revoked.</p>
        )}
        {clients.length >= OAUTH_CLIENTS_PER_ACCOUNT_MAX && typed.problem === null ? null : (
          <AddForm id="add" title="Add a client" isOpen={clients.length === 0 || typed.problem !== null}>
            <Problem text={problemBeside(typed, ["name", "redirect_uris", "type"])} />
            <PostForm user={user} action={CLIENTS_PATH}>
              <FORM.Field
                state={typed}
                name="name"
                label="Name"
                hint="People see it when they connect the client."
                wrong="Enter a name of 1 to 100 ASCII characters."
              />
              <FORM.Field
                state={typed}
                name="redirect_uris"
                label="Redirect URIs"
                hint="One a line, exactly as the client gives them. On 127.0.0.1 and localhost any port fits."
              />
              <StatedChoices
                state={typed}
                name="type"
                legend="Can it keep a secret?"
                choices={TYPE_CHOICES}
                wrong="Choose whether it can keep a secret."
              />
              <div class="buttons">
                <Button>Add client</Button>
              </div>
            </PostForm>
          </AddForm>
        )}
      </>
    ),
  });
}

function Client({ of, now }: { readonly of: AccountClient; readonly now: Date }) {
  const { name, isConfidential, createdAt, createdBy } = of;
  return (
    <>
      <Name text={name} />
      <span class="says">
        {isConfidential ? TYPE_WORDS.confidential : TYPE_WORDS.public}
        {" · added "}
        <Ago at={createdAt} now={now} /> by <ActorName actor={createdBy} />
      </span>
    </>
  );
}

function Redirects({ of }: { readonly of: readonly string[] }) {
  return (
    <>
      {of.map((uri) => (
        <div>
          <UntrustedText text={uri} />
        </div>
      ))}
    </>
  );
}

interface MadeClientPageProps {
  readonly user: Person;
  readonly made: AccountClient;
  /** In plain text; null: it has none. */
  readonly secret: string | null;
  readonly baseUrl: string;
}

/** Shows a new client with its secret, once. */
function madeClientPage({ user, made, secret, baseUrl }: MadeClientPageProps): string {
  return settingsFrame({
    user,
    section: "OAuth clients",
    title: "Your new client",
    back: { href: CLIENTS_PATH, name: "OAuth clients" },
    intro: <Name text={made.name} />,
    children: (
      <section class="card" aria-label="The client">
        {secret === null ? null : (
          <Notice tone="wait">
            The secret is shown only once. Save it now: it disappears when you leave this page, and after five minutes
            at the latest.
          </Notice>
        )}
        <p>Enter these in the client.</p>
        <div class="stack">
          <h2>Client id</h2>
          <code class="code" data-copy="">
            {made.id}
          </code>
        </div>
        {secret === null ? null : (
          <div class="stack">
            <h2>Client secret</h2>
            <code class="code" data-copy="">
              {secret}
            </code>
          </div>
        )}
        <Facts rows={[["Server", <Copied text={`${baseUrl}/mcp`} what="address" />]]} />
        <div class="buttons">
          <LinkButton href={CLIENTS_PATH} look="main">
            {secret === null ? "Done" : "I have saved it"}
          </LinkButton>
        </div>
      </section>
    ),
  });
}

/** The pages of clients that owners add, with the same service as /v1/oauth-clients. They work without script. */
export function oauthClientPages(deps: OAuthClientPageDeps) {
  const { oauthClients, personOf, formOf, flash, baseUrl } = deps;
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      const { client: made, secret } = await oauthClients.add(person.caller, FORM.check(form));
      return flash.showSecretOnce(person, `${CLIENTS_PATH}/${made.id}/made`, { secret }, () =>
        page("own", madeClientPage({ user: person, made, secret, baseUrl })),
      );
    },
    ({ person }, typed) => clientsPage(deps, person, typed),
  );
  const remove = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await unlessGone(oauthClients.remove(person.caller, id));
    return CLIENTS_PATH;
  });
  const hooks = { params: OAuthClientParams };
  return createPersonRoutes(personOf)
    .get(CLIENTS_PATH, async ({ person }) => page("own", await clientsPage(deps, person, EMPTY_FORM)))
    .post(CLIENTS_PATH, add)
    .get(
      `${CLIENTS_PATH}/:id/made`,
      async ({ context, person, params: { id } }) => {
        // Safe: only `add` writes a flash for this path.
        const flashed = flash.read(context, person) as { readonly secret: string | null } | null;
        const made = (await oauthClients.list(person.caller)).find((one) => one.id === id);
        if (flashed !== null && made !== undefined)
          return page("own", madeClientPage({ user: person, made, secret: flashed.secret, baseUrl }));
        throw new DomainError(
          "not_found",
          "A new client’s secret is shown only once, in the browser that added it. If you did not save it, delete the client and add another.",
        );
      },
      hooks,
    )
    .post(`${CLIENTS_PATH}/:id/remove`, remove, hooks);
}
