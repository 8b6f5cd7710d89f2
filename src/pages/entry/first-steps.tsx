/** @jsxImportSource hono/jsx */
import { createCall, ENTER_KEY, firstAction, firstActionCall } from "../../api/code-samples.ts";
import { FIRST_STEPS, type FirstStepProgress } from "../../accounts/first-steps.ts";
import { authorize, mayDo } from "../../core/roles.ts";
import { CodeBlock } from "../../ui/controls.tsx";
import { Button, PostForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icons.tsx";
import { FIRST_STEPS_PATH, Layout, render } from "../../ui/layout.tsx";
import { LinkButton, PageHead } from "../../ui/parts.tsx";
import { SETTINGS_PATHS, templatePath } from "../frame/settings-frame.tsx";
import { Clients, SendTest, testActions } from "../settings/key-instructions.tsx";
import type { PageUser } from "../../ui/text.ts";
import { formIdField, formIdIn } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { TEMPLATES } from "../rules/rule-templates.ts";

/** Where an owner begins. */
export const GET_STARTED_PATH = "/get-started";

const TEST_ACTION_PATH = `${GET_STARTED_PATH}/test`;

interface FirstStepsProps {
  readonly user: PageUser;
  readonly steps: FirstStepProgress;
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
          This call waits until a person approves it, here or by a link. Put a{" "}
          {isOwner ? <a href="/keys">key</a> : "key"} into <code>OUTGATE_API_KEY</code> with <code>{ENTER_KEY}</code>,
          then run it, and decide on it in <a href="/approvals">Approvals</a>.
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
