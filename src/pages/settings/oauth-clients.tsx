/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { nullable } from "../../api/schema-helpers.ts";
import { DomainError } from "../../core/domain-error.ts";
import { NAME_CHARS_MAX, OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../../core/limits.ts";
import type { Person } from "../../http/session.ts";
import { type AccountClient, OAuthClientParams, CreateOAuthClientBody } from "../../oauth/account-clients.ts";
import { Copied, Secret, ShownOnce } from "../../ui/controls.tsx";
import { render } from "../../ui/layout.tsx";
import { Facts, LinkButton, Name, Notice, untrusted } from "../../ui/parts.tsx";
import { number } from "../../ui/text.ts";
import { unlessGone } from "../frame/forms.ts";
import type { ById, PageDeps } from "../frame/page-deps.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { AddedBy, None, RowAction } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import { settingsList } from "../frame/settings-list.tsx";

const CLIENTS_PATH = SETTINGS_PATHS.oauthClients;

const CLIENT_FORM = schemaForm(CreateOAuthClientBody, {
  name: {
    hint: "People see it when they connect the client.",
    wrong: `Enter a name of 1 to ${NAME_CHARS_MAX} ASCII characters.`,
  },
  redirect_uris: {
    label: "Redirect URIs",
    type: "lines",
    hint: "One a line, exactly as the client gives them. On 127.0.0.1 and localhost any port fits.",
  },
  type: {
    label: "Can it keep a secret?",
    choices: [
      { value: "confidential", label: "Confidential", hint: "A server. It gets a secret." },
      { value: "public", label: "Public", hint: "A program on a person’s machine or in a browser. No secret." },
    ],
    wrong: "Choose whether it can keep a secret.",
  },
});

/** The secret of a new client in plain text; null if it has none. */
const CLIENT_SECRET = compile(Type.Object({ secret: nullable(Type.String()) }));

function newClientPage(
  { baseUrl }: PageDeps,
  user: Person,
  { id, name }: AccountClient,
  { secret }: Checked<typeof CLIENT_SECRET>,
) {
  return render(
    <SettingsPage
      user={user}
      section="OAuth clients"
      title="Your new client"
      back={{ href: CLIENTS_PATH, name: "OAuth clients" }}
      intro={<Name text={name} />}
    >
      <section class="card" aria-label="The client">
        {secret === null ? null : <ShownOnce what="The secret" />}
        <p>Enter these in the client.</p>
        <Secret title="Client id" text={id} />
        {secret === null ? null : <Secret title="Client secret" text={secret} />}
        <Facts rows={[["Server", <Copied text={`${baseUrl}/mcp`} what="address" />]]} />
        <div class="buttons">
          <LinkButton href={CLIENTS_PATH} look="main">
            {secret === null ? "Done" : "I have saved it"}
          </LinkButton>
        </div>
      </section>
    </SettingsPage>,
  );
}

export function oauthClientPages(deps: PageDeps) {
  const { oauth, oauthClients, flash } = deps;
  const { routes, rowForm } = settingsList<AccountClient, typeof CreateOAuthClientBody>(deps, {
    section: "OAuth clients",
    path: CLIENTS_PATH,
    intro: (
      <>
        Clients that people of this account can connect by logging in. You need none for claude.ai, ChatGPT and other
        clients that describe themselves. <a href="/docs/connect">Connect by login</a>
      </>
    ),
    view: async ({ user, now }) => {
      const rows = await oauthClients.list(user.caller);
      return {
        rows,
        columns: [
          [
            "Client",
            ({ name, type, createdAt, createdBy }) => (
              <>
                <Name text={name} />
                <AddedBy
                  what={`${type === "confidential" ? "Confidential" : "Public"} · added`}
                  at={createdAt}
                  by={createdBy}
                  now={now}
                />
              </>
            ),
            "main",
          ],
          ["Client id", ({ id }) => <Copied text={id} what="client id" />, "wide"],
          ["Answers go to", ({ redirectUris }) => redirectUris.map((uri) => <div>{untrusted(uri)}</div>), "wide"],
          ["Connections", ({ connections }) => (connections === 0 ? <None>None</None> : number(connections))],
        ],
        actions: ({ id, name }) => (
          <RowAction
            user={user}
            path={`${CLIENTS_PATH}/${id}/remove`}
            of={name}
            name="Delete"
            question={`Delete ${name}? Its connections end, and their keys are revoked.`}
          />
        ),
        empty: {
          icon: "external",
          title: "No clients yet",
          text: "Add one for software that asks you for a client id.",
        },
        above:
          oauth === null ? (
            <Notice tone="wait">OAuth is off on this server, so no client can log in. The setting is OAUTH.</Notice>
          ) : null,
        below:
          rows.length === 0 ? null : (
            <p class="quiet small">Deleting a client ends its connections: their keys are revoked.</p>
          ),
      };
    },
    form: CLIENT_FORM,
    add: ["Add a client", "Add client"],
    max: OAUTH_CLIENTS_PER_ACCOUNT_MAX,
    create: async (person, body) => {
      const { secret, ...client } = await oauthClients.add(person.caller, body);
      return deps.showOnce(person, `${CLIENTS_PATH}/${client.id}/made`, CLIENT_SECRET, { secret }, (user, shown) =>
        newClientPage(deps, user, client, shown),
      );
    },
  });
  const remove = rowForm<ById>(({ person, params: { id } }) => unlessGone(oauthClients.remove(person.caller, id)));
  const hooks = { params: OAuthClientParams };
  return routes
    .get(
      `${CLIENTS_PATH}/:id/made`,
      async ({ context, person, params: { id } }) => {
        const shown = flash.read(context, person, CLIENT_SECRET);
        const client = (await oauthClients.list(person.caller)).find((one) => one.id === id);
        if (shown !== null && client !== undefined) return newClientPage(deps, person, client, shown);
        throw new DomainError(
          "not_found",
          "A new client’s secret is shown only once, in the browser that added it. If you did not save it, delete the client and add another.",
        );
      },
      hooks,
    )
    .post(`${CLIENTS_PATH}/:id/remove`, remove, hooks);
}
