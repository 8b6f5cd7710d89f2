/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { createCall, ENTER_KEY, firstAction, firstActionCall, curlSample, indented } from "../../api/code-samples.ts";
import { type Caller, mayDo } from "../../core/roles.ts";
import { CodeBlock } from "../../ui/controls.tsx";
import { Button, PostForm } from "../../ui/form.tsx";
import { actionPath } from "../../ui/layout.tsx";
import { Card } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";
import { createCheckCreate } from "../../actions/create-schema.ts";
import { type PageDeps } from "../frame/page-deps.ts";
import { NO_EXTRAS } from "../../core/action.ts";
import { limitRefusal } from "../../core/key-limits.ts";
import type { KeyView } from "../../accounts/key-schemas.ts";

/** Creates the usual first action and leads to its page. */
export function testActions(deps: PageDeps) {
  const { actionService, clock, baseUrl } = deps;
  const checkCreate = createCheckCreate(deps);
  return async (caller: Caller, title: string, idempotencyKey: string | null): Promise<string> => {
    const { request, reason } = checkCreate({
      value: { ...firstAction(baseUrl), title },
      bodyText: () => "",
      idempotencyKey,
      role: caller.role,
      now: clock.now(),
    });
    const { action } = await actionService.create(caller, request, { reason });
    return actionPath(action.id);
  };
}

export function SendTest({ baseUrl, children }: { readonly baseUrl: string; readonly children?: Child }) {
  const { method, url } = firstAction(baseUrl);
  return (
    <div class="buttons">
      <Button>Send a test action</Button>
      <span class="quiet">
        It sends <code>{`${method} ${url}`}</code>
        {children}
      </span>
    </div>
  );
}

interface KeyUseProps {
  readonly user: PageUser;
  readonly made: KeyView;
  readonly apiKey: string;
  readonly baseUrl: string;
}

/** How to use a new key: in an environment file, in MCP clients, and in a first call. */
export function KeyInstructions(props: KeyUseProps) {
  const {
    made: { role, hold },
    apiKey,
    baseUrl,
  } = props;
  const mayCreate = mayDo(role, "create");
  // A held call has no result to wait for.
  const create = hold === "all" ? createCall(baseUrl, firstAction(baseUrl)) : firstActionCall(baseUrl);
  const list = curlSample({ method: "GET", url: `${baseUrl}/v1/actions` });
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

/** Sends one action with the key itself, to show what it may do. Opens a window, because this page is shown only once. */
function TestForm({ user, made, apiKey, baseUrl }: KeyUseProps) {
  const test = firstAction(baseUrl);
  if (limitRefusal(made, { ...test, headers: null, body: null, extras: NO_EXTRAS }) !== null) {
    return (
      <p class="quiet">
        The limits of this key don’t allow the usual test call, {test.method} {test.url}.
      </p>
    );
  }
  return (
    <PostForm user={user} action={`/keys/${made.id}/test`} fields={[["key", apiKey]]} opensWindow>
      <SendTest baseUrl={baseUrl}>
        {` with this key${made.hold === "all" ? ", once you approve it" : ""}, and opens the action in another window.`}
      </SendTest>
    </PostForm>
  );
}

/** MCP clients by name, each with its file and text. Where possible, the text names a variable for the key, since people share such files. */
export function Clients({ baseUrl }: Pick<KeyUseProps, "baseUrl">) {
  return (
    <>
      <div>
        {mcpClients(baseUrl).map(({ name, hint, text }, at) => (
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
        In the shell that starts your agent: <code>{ENTER_KEY}</code>, paste the key and press Enter. More clients, and
        the tools: <a href="/docs/mcp">agents over MCP</a>.
      </p>
    </>
  );
}

/** The clients in docs/mcp, in the same order. */
function mcpClients(baseUrl: string) {
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
      // Single quotes: Claude Code expands the variable, so the key is neither on the command line nor in a file.
      text: `claude mcp add --transport http outgate ${url} --scope project --header 'Authorization: Bearer \${OUTGATE_API_KEY}'`,
    },
    {
      name: "Claude Desktop",
      hint: "In claude_desktop_config.json, with the file of `npm run build bridge`. Put the key in place of YOUR_KEY.",
      text: indented({
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
      text: indented({ mcpServers: { outgate: http("${env:OUTGATE_API_KEY}") } }),
    },
    {
      name: "VS Code",
      hint: "In .vscode/mcp.json. VS Code asks for the key once and stores it.",
      text: indented({
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
      text: indented({ mcpServers: { outgate: http("${OUTGATE_API_KEY}", "http") } }),
    },
  ];
}
