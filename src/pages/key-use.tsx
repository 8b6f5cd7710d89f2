/** @jsxImportSource hono/jsx */
import { NO_EXTRAS } from "../core/extras.ts";
import { createCall, ENTER_KEY, firstAction, firstActionCall, keyHeader } from "../accounts/first-action.ts";
import { limitRefusal } from "../core/key-limits.ts";
import { mayDo } from "../core/roles.ts";
import type { KeyView } from "../accounts/key-routes.ts";
import { CodeBlock } from "../ui/controls.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import { Card } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";

interface KeyUseProps {
  readonly user: PageUser;
  readonly made: KeyView;
  readonly apiKey: string;
  readonly baseUrl: string;
}

/** How to use a new key: in a file of variables, by MCP clients, and in a first call. */
export function KeyInstructions(props: KeyUseProps) {
  const {
    made: { role, hold },
    apiKey,
    baseUrl,
  } = props;
  const mayCreate = mayDo(role, "create");
  // What is held can't be waited for.
  const create = hold === "all" ? createCall(baseUrl, firstAction(baseUrl)) : firstActionCall(baseUrl);
  const list = `curl -s ${baseUrl}/v1/actions ${keyHeader("OUTGATE_API_KEY")}`;
  return (
    <>
      <Card id="first" title={mayCreate ? "Send a first action" : "List actions"}>
        {mayCreate ? <TestForm {...props} /> : null}
        <p class="quiet">
          Put the key into <code>OUTGATE_API_KEY</code> with <code>{ENTER_KEY}</code>, then run:
        </p>
        <CodeBlock text={mayCreate ? create : list} label="With curl" />
      </Card>
      <Card id="use" title="Use this key">
        <p class="quiet">Programs read it from these variables. Keep the file out of version control.</p>
        <CodeBlock text={`OUTGATE_URL=${baseUrl}\nOUTGATE_API_KEY=${apiKey}`} label="A file .env" />
        {role === "owner" ? (
          <p class="quiet">Don’t give an owner key to an agent: create an agent key for each one.</p>
        ) : (
          <>
            <h3>Connect an agent by MCP</h3>
            <Clients baseUrl={baseUrl} />
          </>
        )}
      </Card>
    </>
  );
}

/** Sends one action with the key itself, so that it shows what the key may do. In a window of its own: this page is shown once. */
function TestForm({ user, made, apiKey, baseUrl }: KeyUseProps) {
  const test = firstAction(baseUrl);
  const call = `${test.method} ${test.url}`;
  if (limitRefusal(made, { ...test, headers: null, body: null, extras: NO_EXTRAS }) !== null) {
    return <p class="quiet">The limits of this key don’t allow the usual test call, {call}.</p>;
  }
  return (
    <PostForm user={user} action={`/keys/${made.id}/test`} fields={[["key", apiKey]]} opensWindow>
      <div class="buttons">
        <Button>Send a test action</Button>
        <span class="quiet">
          It sends <code>{call}</code> with this key
          {made.hold === "all" ? ", once you approve it" : ""}, and opens the action in another window.
        </span>
      </div>
    </PostForm>
  );
}

/** Clients of MCP by name, each with its file and its text. They name a variable in place of the key where they can, because such files are shared. */
export function Clients({ baseUrl }: Pick<KeyUseProps, "baseUrl">) {
  return (
    <>
      <div>
        {clientsOf(baseUrl).map(({ name, hint, text }, at) => (
          <details class="uses" name="client" open={at === 0}>
            <summary>{name}</summary>
            <div class="stack">
              <p class="quiet">{hint}</p>
              <CodeBlock text={text} label={name} />
            </div>
          </details>
        ))}
      </div>
      <p class="quiet">
        In the shell that starts your agent: <code>read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY</code>, paste the
        key and press Enter. More clients, and the tools: <a href="/docs/mcp">agents over MCP</a>.
      </p>
    </>
  );
}

interface McpClient {
  readonly name: string;
  readonly hint: string;
  readonly text: string;
}

/** The clients of docs/mcp, in its order. */
function clientsOf(baseUrl: string): readonly McpClient[] {
  const url = `${baseUrl}/mcp`;
  const http = (key: string, type?: "http") => ({
    ...(type === undefined ? {} : { type }),
    url,
    headers: { Authorization: `Bearer ${key}` },
  });
  return [
    {
      name: "Claude Code",
      hint: "Run it in the project’s folder. It writes .mcp.json; the key stays in the variable.",
      // In single quotes: Claude Code expands the variable, so that the key is neither on the command line nor in a file.
      text: `claude mcp add --transport http outgate ${url} --scope project --header 'Authorization: Bearer \${OUTGATE_API_KEY}'`,
    },
    {
      name: "Claude Desktop",
      hint: "In claude_desktop_config.json, with the file of `npm run build bridge`. Put the key in place of YOUR_KEY.",
      text: pretty({
        mcpServers: {
          outgate: {
            command: "node",
            args: ["/path/to/outgate/dist/outgate-mcp.mjs"],
            env: { OUTGATE_URL: baseUrl, OUTGATE_API_KEY: "YOUR_KEY" },
          },
        },
      }),
    },
    {
      name: "Cursor",
      hint: "In ~/.cursor/mcp.json.",
      text: pretty({ mcpServers: { outgate: http("${env:OUTGATE_API_KEY}") } }),
    },
    {
      name: "VS Code",
      hint: "In .vscode/mcp.json. VS Code asks for the key once and stores it.",
      text: pretty({
        inputs: [{ id: "outgate-key", type: "promptString", description: "Outgate agent key", password: true }],
        servers: { outgate: http("${input:outgate-key}", "http") },
      }),
    },
    {
      name: "Codex",
      hint: "In ~/.codex/config.toml.",
      text: `[mcp_servers.outgate]\nurl = "${url}"\nbearer_token_env_var = "OUTGATE_API_KEY"\ntool_timeout_sec = 150`,
    },
    {
      name: "Other clients",
      hint: "Most read a project’s .mcp.json, or ask for the same address and header.",
      text: pretty({ mcpServers: { outgate: http("${OUTGATE_API_KEY}", "http") } }),
    },
  ];
}

function pretty(value: object): string {
  return JSON.stringify(value, null, 2);
}
