/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { createCall, ENTER_KEY, firstAction, firstActionCall } from "../../api/first-action.ts";
import { curlSample } from "../../api/code-samples.ts";
import { FIRST_STEPS, type FirstSteps } from "../../accounts/first-steps.ts";
import { authorize, type Caller, mayDo } from "../../core/roles.ts";
import { CodeBlock } from "../../ui/controls.tsx";
import { Button, PostForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icons.tsx";
import { actionPath, Layout, render } from "../../ui/layout.tsx";
import { LinkButton, PageHead, Card } from "../../ui/parts.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";
import type { PageUser } from "../../ui/text.ts";
import { createCheckCreate } from "../../actions/create-schema.ts";
import { formIdField, formIdIn } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { templatePath, TEMPLATES } from "../rules/rule-templates.ts";
import { NO_EXTRAS } from "../../core/action.ts";
import { limitRefusal } from "../../core/key-limits.ts";
import type { KeyView } from "../../accounts/key-schemas.ts";

/** The form that hides the first steps. */
export const FIRST_STEPS_PATH = "/overview/first-steps";

/** Where an owner begins. */
export const GET_STARTED_PATH = "/get-started";

const TEST_ACTION_PATH = `${GET_STARTED_PATH}/test`;

interface FirstStepsProps {
  readonly user: PageUser;
  readonly steps: FirstSteps;
  readonly baseUrl: string;
  /** Identifies the test action's form, so that a form sent twice sends one call; left out if the list only links to it. */
  readonly formId?: string | undefined;
}

type StepName = (typeof FIRST_STEPS)[number];

const TITLES = {
  action: "Send a first action",
  approval: "Approve a request",
  agent: "Connect an agent",
  signature: "Verify a signature",
} as const satisfies Record<StepName, string>;

function getStartedPage(props: FirstStepsProps): string {
  return render(
    <Layout title="Get started" nav="Overview" user={props.user}>
      <PageHead
        title="Get started"
        intro="Agents send their HTTP calls through Outgate. You approve those that need it, and see what became of each."
      />
      <FirstStepList {...props} />
    </Layout>,
  );
}

/** The first steps. Each is ticked once it is done, and the next one is open. */
export function FirstStepList(props: FirstStepsProps) {
  const { user, steps, formId } = props;
  const isPage = formId !== undefined;
  const left = FIRST_STEPS.filter((step) => !steps.done.has(step));
  return (
    <section class="card first-steps" aria-labelledby="first-steps">
      <div class="between">
        <h2 id="first-steps">
          {isPage ? "First steps" : "Get started"}{" "}
          <span class="aside small">{`${FIRST_STEPS.length - left.length} of ${FIRST_STEPS.length} done`}</span>
        </h2>
        {isPage ? null : (
          <PostForm user={user} action={FIRST_STEPS_PATH}>
            <Button look="link">Hide</Button>
          </PostForm>
        )}
      </div>
      <ol>
        {FIRST_STEPS.map((step, at) =>
          steps.done.has(step) ? (
            <li class="first-step first-step-done">
              <span class="first-step-mark">
                <Icon name="check" />
              </span>
              <p>
                {TITLES[step]} <span class="visually-hidden">done</span>
              </p>
            </li>
          ) : (
            <li class="first-step">
              <span class="first-step-mark" aria-hidden="true">
                {at + 1}
              </span>
              <details open={step === left[0]}>
                <summary>{TITLES[step]}</summary>
                <div class="stack">
                  <StepBody step={step} {...props} />
                </div>
              </details>
            </li>
          ),
        )}
      </ol>
    </section>
  );
}

function StepBody({ step, user, baseUrl, formId }: FirstStepsProps & { readonly step: StepName }) {
  const isOwner = mayDo(user.role, "manage");
  if (step === "action") {
    return (
      <>
        <TestAction user={user} baseUrl={baseUrl} formId={formId} />
        <p class="quiet">
          Or as a program does: put an agent key into <code>OUTGATE_API_KEY</code> with <code>{ENTER_KEY}</code>, then
          run this. A key is shown once, when it is created.
        </p>
        <CodeBlock text={firstActionCall(baseUrl)} label="A first action" />
        {isOwner ? (
          <p>
            <LinkButton href="/keys/new">Create an agent key</LinkButton>
          </p>
        ) : (
          <p class="quiet">Ask an owner of this account for an agent key.</p>
        )}
      </>
    );
  }
  if (step === "approval") {
    return (
      <>
        <p class="quiet">
          This call waits until a person approves it, here or by a link. Decide on it in{" "}
          <a href="/approvals">Approvals</a>.
        </p>
        <CodeBlock
          text={createCall(baseUrl, { ...firstAction(baseUrl), title: "My first request", approve: true })}
          label="An action that needs approval"
        />
        {isOwner ? (
          <p class="quiet">
            Agents need not ask for it: <a href={SETTINGS_PATHS.rules}>rules</a> say which calls wait, or are refused.
            Begin with one of these:{" "}
            {TEMPLATES.map(({ name, title }, at) => (
              <>
                {at === 0 ? null : ", "}
                <a href={templatePath(name)}>{title}</a>
              </>
            ))}
          </p>
        ) : null}
      </>
    );
  }
  if (step === "signature") {
    return (
      <>
        <p class="quiet">
          Let your services check that a call comes from Outgate, as <a href="/docs/verify">Verify what you receive</a>{" "}
          shows in six languages. Then paste one that arrived, or test your receiver of callbacks: this step is done
          when a signature was verified.
        </p>
        {isOwner ? (
          <p>
            <LinkButton href={`${SETTINGS_PATHS.signing}#check`}>Check a signature</LinkButton>{" "}
            <LinkButton href={`${SETTINGS_PATHS.callbackHosts}#test`}>Test a receiver</LinkButton>
          </p>
        ) : (
          <p class="quiet">Ask an owner of this account for the signing secret of your service.</p>
        )}
      </>
    );
  }
  return (
    <>
      <p class="quiet">
        Done when an MCP client has created an action. Ask your agent to call {firstAction(baseUrl).url} through
        Outgate.
      </p>
      <Clients baseUrl={baseUrl} />
    </>
  );
}

/** The form of the test action, for people who may create actions. */
function TestAction({ user, baseUrl, formId }: Omit<FirstStepsProps, "steps">) {
  if (!mayDo(user.role, "create")) return null;
  if (formId === undefined) {
    return (
      <p>
        <LinkButton href={GET_STARTED_PATH} look="main">
          Send a test action
        </LinkButton>
      </p>
    );
  }
  return (
    <PostForm user={user} action={TEST_ACTION_PATH} fields={[formIdField(formId)]}>
      <SendTest baseUrl={baseUrl}>, which changes nothing, and opens the action.</SendTest>
    </PostForm>
  );
}

function SendTest({ baseUrl, children }: { readonly baseUrl: string; readonly children?: Child }) {
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

export function getStartedPages(deps: PageDeps) {
  const { firstSteps, answer, ids, baseUrl } = deps;
  const create = testActions(deps);
  const send = answer(async ({ person: { caller }, form }) => {
    authorize(caller, "create");
    return create(caller, "My first action", formIdIn(form));
  });
  return personPages(deps, { [TEST_ACTION_PATH]: GET_STARTED_PATH })
    .get(GET_STARTED_PATH, async ({ person }) => {
      const { times } = await firstSteps.state(person.caller);
      const steps = { done: new Set(times.keys()), isNew: !times.has("action") };
      return getStartedPage({ user: person, steps, baseUrl, formId: ids.request() });
    })
    .post(TEST_ACTION_PATH, send);
}

/** Creates the usual first action and leads to its page. */
export function testActions(deps: PageDeps) {
  const { actionService, clock, baseUrl } = deps;
  const checkCreate = createCheckCreate(deps);
  return async (caller: Caller, title: string, idempotencyKey: string | null): Promise<string> => {
    const { request, reason } = checkCreate({
      value: { ...firstAction(baseUrl), title },
      textOf: () => "",
      idempotencyKey,
      role: caller.role,
      now: clock.now(),
    });
    const { action } = await actionService.create(caller, request, { reason });
    return actionPath(action.id);
  };
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
        In the shell that starts your agent: <code>{ENTER_KEY}</code>, paste the key and press Enter. More clients, and
        the tools: <a href="/docs/mcp">agents over MCP</a>.
      </p>
    </>
  );
}

/** The clients in docs/mcp, in the same order. */
function clientsOf(baseUrl: string) {
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
