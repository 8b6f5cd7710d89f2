/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../contract/key.ts";
import type { Role } from "../domain/roles.ts";
import { signUpsClosedWords } from "../domain/sign-ups.ts";
import { ACCOUNTS_PAGE_PATH } from "./accounts.tsx";
import { holdWord, roleWord } from "./key-words.ts";
import { KeyName } from "./keys.tsx";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { SnippetView } from "./snippet.tsx";
import type { PageUser } from "./visitor.ts";

export interface MadeKeyPageProps {
  readonly user: PageUser;
  readonly made: ShownKey;
  /** In clear; the server keeps nothing of it. */
  readonly key: string;
  /** With it nobody may sign up any more. */
  readonly closesSignUps: boolean;
  /** Where programs reach the service. */
  readonly baseUrl: string;
}

/** Shows a new key for the only time, with the lines that put it to use. */
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
          {signUpsClosedWords("hold")} Accounts that were signed up before are stopped:{" "}
          <a href={ACCOUNTS_PAGE_PATH}>Accounts</a>.
        </Notice>
      ) : null}
      <section class="card" aria-label="The key">
        <Notice tone="wait">
          It is shown this once. Keep it now: it is gone when you leave this page, and in five minutes at the latest.
        </Notice>
        <code class="code" id="key" data-copy="">
          {key}
        </code>
        <a class="button fit" href="/keys">
          I have kept it
        </a>
      </section>
      <section class="card" aria-labelledby="use">
        <h2 id="use">Put it to use</h2>
        <SnippetView title={firstCall(role).title} text={firstCall(role).text(baseUrl, key)} />
        {role === "owner" ? (
          <p class="quiet">An owner key is not for agents: make an agent key for each of them.</p>
        ) : (
          <Agents baseUrl={baseUrl} />
        )}
      </section>
    </Layout>,
  );
}

/** The ways by which agents take it up (docs/mcp says more). The files name a variable: they are made to be shared, a key is not. */
function Agents({ baseUrl }: { readonly baseUrl: string }) {
  return (
    <>
      <SnippetView
        title="Where your agent starts: then paste the key, and Enter"
        text={"read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY"}
      />
      <SnippetView title="Claude Code, which then writes the file below" text={claudeLine(baseUrl)} />
      <SnippetView
        title="Codex, ~/.codex/config.toml"
        text={`[mcp_servers.outgate]\nurl = "${baseUrl}/mcp"\nbearer_token_env_var = "OUTGATE_API_KEY"\ntool_timeout_sec = 150`}
      />
      <SnippetView title="A project’s .mcp.json" text={mcpJson(baseUrl)} />
      <p class="quiet small">
        More clients, and what the tools do: <a href="/docs/mcp">agents over MCP</a>.
      </p>
    </>
  );
}

/** In single quotes: Claude Code puts the variable in, so that the key stands neither on the command line nor in a file. */
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
  title: "Look at the actions",
  text: (baseUrl, key) => `curl -s ${baseUrl}/v1/actions -H @- <<KEY
Authorization: Bearer ${key}
KEY`,
};

/** The first thing that the key may do. */
function firstCall(role: Role): FirstCall {
  return role === "owner" || role === "agent" ? CREATES : READS;
}
