/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../accounts/schemas.ts";
import { NAME_CHARS_MAX } from "../config/limits.ts";
import { Choices, Button, Field, FormToken } from "./form.tsx";
import { HOLD_CHOICES, ROLE_CHOICES, SCOPE_CHOICES, type PageUser, holdWord, roleWord } from "./words.ts";
import { Layout, render } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import type { Role } from "../accounts/roles.ts";
import { signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import { ACCOUNTS_PAGE_PATH } from "./settings.tsx";
import { KeyName } from "./keys.tsx";
import { SnippetView } from "./snippets.tsx";

/** The state of the form. */
export interface TypedKey {
  readonly name: string;
  readonly role: string | null;
  readonly hold: string | null;
  readonly scope: string | null;
  /** ID of the replaced key; empty if there is none. */
  readonly replaces: string;
  readonly problems: Readonly<Partial<Record<"name" | "role" | "hold" | "scope" | "replaces", string>>>;
  /** A problem with no particular field. */
  readonly message: string | null;
}

/** No role is preselected, so that nobody creates an owner key by accident. */
export const UNTYPED_KEY: TypedKey = {
  name: "",
  role: null,
  hold: "none",
  scope: "own",
  replaces: "",
  problems: {},
  message: null,
};

export interface NewKeyPageProps {
  readonly user: PageUser;
  readonly typed: TypedKey;
  /** The keys that it can replace. */
  readonly keys: readonly ShownKey[];
  /** Identifies the form, so that submitting it twice creates one key. */
  readonly formId: string;
}

/** The form for a new key. */
export function newKeyPage({ user, typed, keys, formId }: NewKeyPageProps): string {
  const { name, role, problems, message } = typed;
  return render(
    <Layout title="Create a key" place="Keys" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/keys">All keys</a>
        </p>
        <h1>Create a key</h1>
        <p class="quiet">The next page shows the key once. Have a safe place ready to store it.</p>
      </div>
      <form method="post" action="/keys" class="card">
        <FormToken user={user} />
        <input type="hidden" name="form_id" value={formId} />
        {message === null ? null : <Notice tone="bad">{message}</Notice>}
        <Field
          name="name"
          label="Name"
          value={name}
          hint="Shown in lists and timelines, like “ci” or “support agent”."
          isRequired
          charsMax={NAME_CHARS_MAX}
          autocomplete="off"
          problem={problems.name ?? null}
        />
        <Choices
          name="role"
          legend="What can it do?"
          choices={ROLE_CHOICES}
          chosen={role}
          problem={problems.role ?? null}
        />
        <HoldAndScope typed={typed} />
        {keys.length === 0 ? null : <Replaces typed={typed} keys={keys} />}
        <Button>Create key</Button>
      </form>
    </Layout>,
  );
}

function HoldAndScope({ typed: { hold, scope, problems } }: Pick<NewKeyPageProps, "typed">) {
  return (
    <>
      <Choices
        name="hold"
        legend="Which calls need approval?"
        choices={HOLD_CHOICES}
        chosen={hold}
        problem={problems.hold ?? null}
      />
      <Choices
        name="scope"
        legend="For an agent key: which actions can it manage?"
        choices={SCOPE_CHOICES}
        chosen={scope}
        problem={problems.scope ?? null}
      />
    </>
  );
}

function Replaces({ typed, keys }: Pick<NewKeyPageProps, "typed" | "keys">) {
  const problem = typed.problems.replaces ?? null;
  return (
    <>
      <div class="field">
        <label for="replaces">Replaces</label>
        <p id="replaces-hint" class="quiet small">
          The new key can also manage the actions that this key created. The old key works until you revoke it.
        </p>
        <select id="replaces" name="replaces" aria-describedby="replaces-hint">
          <option value="">No key</option>
          {keys.map(({ id, name, last4, revokedAt }) => (
            <option value={id} selected={id === typed.replaces}>
              {`${name} (…${last4})${revokedAt === null ? "" : ", revoked"}`}
            </option>
          ))}
        </select>
        {problem === null ? null : <p class="problem small">{problem}</p>}
      </div>
      <label class="option">
        <input type="checkbox" name="weaker_hold" value="yes" />
        <span>
          <b>Allow fewer calls to need approval than for the replaced key</b>{" "}
          <span class="quiet small">Calls that needed approval before are then sent without it.</span>
        </span>
      </label>
    </>
  );
}

export interface MadeKeyPageProps {
  readonly user: PageUser;
  readonly made: ShownKey;
  /** In plain text; the server stores only its hash. */
  readonly key: string;
  /** Creating this key closed sign-ups. */
  readonly closesSignUps: boolean;
  /** Where programs reach the service. */
  readonly baseUrl: string;
}

/** Shows a new key once, with snippets that use it. */
export function madeKeyPage({ user, made, key, closesSignUps, baseUrl }: MadeKeyPageProps): string {
  const { role, hold } = made;
  return render(
    <Layout title="Your new key" place="Keys" user={user}>
      <div class="head">
        <h1>Your new key</h1>
        <p>
          <KeyName of={made} /> · {roleWord(role)}
          {holdWord(hold) === null ? "" : ` · ${holdWord(hold)?.toLowerCase()}`}
        </p>
      </div>
      {closesSignUps ? (
        <Notice tone="wait">
          {signUpsClosedMessage("hold")} Accounts that signed up before are stopped:{" "}
          <a href={ACCOUNTS_PAGE_PATH}>Accounts</a>.
        </Notice>
      ) : null}
      <section class="card" aria-label="The key">
        <Notice tone="wait">
          This key is shown only once. Save it now: it disappears when you leave this page, and after five minutes at
          the latest.
        </Notice>
        <code class="code" id="key" data-copy="">
          {key}
        </code>
        <a class="button fit" href="/keys">
          I have saved it
        </a>
      </section>
      <section class="card" aria-labelledby="use">
        <h2 id="use">Use this key</h2>
        <SnippetView title={firstCall(role).title} text={firstCall(role).text(baseUrl, key)} />
        {role === "owner" ? (
          <p class="quiet">Don’t give an owner key to an agent: create an agent key for each one.</p>
        ) : (
          <Agents baseUrl={baseUrl} />
        )}
      </section>
    </Layout>,
  );
}

/** How to connect agents. The files contain a variable instead of the key, because they are shared. */
function Agents({ baseUrl }: { readonly baseUrl: string }) {
  return (
    <>
      <SnippetView
        title="In the shell that starts your agent (paste the key, then press Enter)"
        text={"read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY"}
      />
      <SnippetView title="Claude Code (writes the file below)" text={claudeLine(baseUrl)} />
      <SnippetView
        title="Codex, ~/.codex/config.toml"
        text={`[mcp_servers.outgate]\nurl = "${baseUrl}/mcp"\nbearer_token_env_var = "OUTGATE_API_KEY"\ntool_timeout_sec = 150`}
      />
      <SnippetView title="A project’s .mcp.json" text={mcpJson(baseUrl)} />
      <p class="quiet small">
        More clients, and the tools: <a href="/docs/mcp">agents over MCP</a>.
      </p>
    </>
  );
}

/** In single quotes: Claude Code expands the variable, so that the key is neither on the command line nor in a file. */
function claudeLine(baseUrl: string): string {
  const header = "'Authorization: Bearer ${OUTGATE_API_KEY}'";
  return `claude mcp add --transport http outgate ${baseUrl}/mcp --scope project --header ${header}`;
}

function mcpJson(baseUrl: string): string {
  const headers = { Authorization: "Bearer ${OUTGATE_API_KEY}" };
  return JSON.stringify({ mcpServers: { outgate: { type: "http", url: `${baseUrl}/mcp`, headers } } }, null, 2);
}

interface FirstCall {
  readonly title: string;
  readonly text: (baseUrl: string, key: string) => string;
}

const CREATES: FirstCall = {
  title: "Send a first action",
  text: (baseUrl, key) => `curl -s ${baseUrl}/v1/actions -H @- \\
  -H 'Content-Type: application/json' \\
  -d '{"url":"https://example.com/","method":"GET","sync":true}' <<KEY
Authorization: Bearer ${key}
KEY`,
};

const READS: FirstCall = {
  title: "List actions",
  text: (baseUrl, key) => `curl -s ${baseUrl}/v1/actions -H @- <<KEY
Authorization: Bearer ${key}
KEY`,
};

/** A first request that the role allows. */
function firstCall(role: Role): FirstCall {
  return role === "owner" || role === "agent" ? CREATES : READS;
}
