/** @jsxImportSource hono/jsx */
import type { Role } from "../accounts/roles.ts";
import type { KeyView } from "../accounts/schemas.ts";
import { signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import { NAME_CHARS_MAX } from "../config/limits.ts";
import { Button, Choices, Field, PostForm, Select } from "./form.tsx";
import { keyLabel, KeyName, KEYS_LINK } from "./keys.tsx";
import { HTTP_METHODS } from "../actions/action.ts";
import { Layout, render } from "./layout.tsx";
import { Card, Notice, PageHead, Problem } from "./parts.tsx";
import { ACCOUNTS_PAGE_PATH } from "./settings.tsx";
import { Snippet } from "./snippets.tsx";
import { HOLD_CHOICES, holdLabel, type PageUser, ROLE_CHOICES, roleLabel, SCOPE_CHOICES } from "./text.ts";

export type KeyField =
  | "name"
  | "role"
  | "hold"
  | "scope"
  | "replaces"
  | "hosts"
  | "methods"
  | "daily_actions"
  | "expires_at";

/** The state of the form. */
export interface KeyInput {
  readonly name: string;
  readonly role: string | null;
  readonly hold: string | null;
  readonly scope: string | null;
  /** ID of the replaced key; empty if there is none. */
  readonly replaces: string;
  /** One a line. */
  readonly hosts: string;
  readonly methods: readonly string[];
  readonly dailyActions: string;
  /** As the input has it: without a time zone, UTC. */
  readonly expiresAt: string;
  readonly problems: Readonly<Partial<Record<KeyField, string>>>;
  /** A problem with no particular field. */
  readonly message: string | null;
}

/** No role is preselected, so that nobody creates an owner key by accident. */
export const EMPTY_KEY_INPUT: KeyInput = {
  name: "",
  role: null,
  hold: "none",
  scope: "own",
  replaces: "",
  hosts: "",
  methods: [],
  dailyActions: "",
  expiresAt: "",
  problems: {},
  message: null,
};

interface NewKeyPageProps {
  readonly user: PageUser;
  readonly typed: KeyInput;
  /** The keys that it can replace. */
  readonly keys: readonly KeyView[];
  /** Identifies the form, so that submitting it twice creates one key. */
  readonly formId: string;
}

const QUESTIONS = [
  { name: "role", legend: "What can it do?", choices: ROLE_CHOICES },
  { name: "hold", legend: "Which calls need approval?", choices: HOLD_CHOICES },
  { name: "scope", legend: "For an agent key: which actions can it manage?", choices: SCOPE_CHOICES },
] as const;

/** The form for a new key. */
export function newKeyPage({ user, typed, keys, formId }: NewKeyPageProps): string {
  const { name, replaces, problems, message } = typed;
  return render(
    <Layout title="Create a key" nav="Keys" user={user}>
      <PageHead
        title="Create a key"
        back={KEYS_LINK}
        intro="The next page shows the key once. Have a safe place ready to store it."
      />
      <PostForm user={user} action="/keys" class="card" fields={[["form_id", formId]]}>
        <Problem text={message} />
        <Field
          name="name"
          label="Name"
          value={name}
          hint="Shown in lists and timelines, like “ci” or “support agent”."
          required
          maxlength={NAME_CHARS_MAX}
          autocomplete="off"
          problem={problems.name ?? null}
        />
        {QUESTIONS.map(({ name: question, legend, choices }) => (
          <Choices
            name={question}
            legend={legend}
            choices={choices}
            chosen={typed[question]}
            problem={problems[question]}
          />
        ))}
        {keys.length === 0 ? null : (
          <>
            <Select
              name="replaces"
              label="Replaces"
              hint="The new key can also manage the actions that this key created. The old key works until you revoke it."
              none="No key"
              options={keys.map((key) => [key.id, keyLabel(key)])}
              chosen={replaces}
              problem={problems.replaces ?? null}
            />
            <label class="option">
              <input type="checkbox" name="weaker_hold" value="yes" />
              <span>
                <b>Allow fewer calls to need approval than for the replaced key</b>{" "}
                <span class="quiet small">Calls that needed approval before are then sent without it.</span>
              </span>
            </label>
          </>
        )}
        <LimitFields typed={typed} />
        <Button>Create key</Button>
      </PostForm>
    </Layout>,
  );
}

/** What the key may do at most; all of it optional. */
function LimitFields({ typed }: Pick<NewKeyPageProps, "typed">) {
  const { hosts, methods, dailyActions, expiresAt, problems } = typed;
  const isOpen = hosts !== "" || methods.length > 0 || dailyActions !== "" || expiresAt !== "";
  return (
    <details open={isOpen || LIMIT_FIELDS.some((name) => problems[name] !== undefined)}>
      <summary>Limits</summary>
      <Field
        name="hosts"
        label="Hosts"
        type="lines"
        value={hosts}
        hint="One a line, like api.stripe.com or *.internal.example. Empty: any host."
        problem={problems.hosts ?? null}
      />
      <fieldset>
        <legend>Methods</legend>
        <p class="quiet small">None chosen means every method.</p>
        {HTTP_METHODS.map((method) => (
          <label>
            <input type="checkbox" name={`method_${method}`} value="yes" checked={methods.includes(method)} /> {method}
          </label>
        ))}
      </fieldset>
      <Field
        name="daily_actions"
        label="Actions a day"
        value={dailyActions}
        hint="Creates a day, UTC. Empty: any number."
        autocomplete="off"
        problem={problems.daily_actions ?? null}
      />
      <Field
        name="expires_at"
        label="Works until (UTC)"
        type="datetime-local"
        value={expiresAt}
        hint="Empty: until it is revoked."
        problem={problems.expires_at ?? null}
      />
    </details>
  );
}

const LIMIT_FIELDS = ["hosts", "methods", "daily_actions", "expires_at"] as const;

interface MadeKeyPageProps {
  readonly user: PageUser;
  readonly made: KeyView;
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
    <Layout title="Your new key" nav="Keys" user={user}>
      <PageHead title="Your new key">
        <p>
          <KeyName of={made} /> · {roleLabel(role)}
          {holdLabel(hold) === null ? "" : ` · ${holdLabel(hold)?.toLowerCase()}`}
        </p>
      </PageHead>
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
      <Card id="use" title="Use this key">
        <FirstCall role={role} baseUrl={baseUrl} apiKey={key} />
        {role === "owner" ? (
          <p class="quiet">Don’t give an owner key to an agent: create an agent key for each one.</p>
        ) : (
          <Agents baseUrl={baseUrl} />
        )}
      </Card>
    </Layout>,
  );
}

/** How to connect agents. The files contain a variable instead of the key, because they are shared. */
function Agents({ baseUrl }: { readonly baseUrl: string }) {
  return (
    <>
      <Snippet
        title="In the shell that starts your agent (paste the key, then press Enter)"
        text={"read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY"}
      />
      <Snippet title="Claude Code (writes the file below)" text={claudeLine(baseUrl)} />
      <Snippet
        title="Codex, ~/.codex/config.toml"
        text={`[mcp_servers.outgate]\nurl = "${baseUrl}/mcp"\nbearer_token_env_var = "OUTGATE_API_KEY"\ntool_timeout_sec = 150`}
      />
      <Snippet title="A project’s .mcp.json" text={mcpJson(baseUrl)} />
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

/** A first request that the role allows. */
function FirstCall({
  role,
  baseUrl,
  apiKey,
}: {
  readonly role: Role;
  readonly baseUrl: string;
  readonly apiKey: string;
}) {
  const creates = role === "owner" || role === "agent";
  const body = ` \\
  -H 'Content-Type: application/json' \\
  -d '{"url":"https://example.com/","method":"GET","sync":true}'`;
  const text = `curl -s ${baseUrl}/v1/actions -H @-${creates ? body : ""} <<KEY
Authorization: Bearer ${apiKey}
KEY`;
  return <Snippet title={creates ? "Send a first action" : "List actions"} text={text} />;
}
