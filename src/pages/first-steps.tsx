/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { FIRST_STEPS, type FirstSteps } from "../accounts/first-steps.ts";
import { mayDo } from "../accounts/roles.ts";
import { CodeBlock } from "./controls.tsx";
import { Button, PostForm } from "./form.tsx";
import { Icon } from "./icons.tsx";
import { Clients } from "./key-use.tsx";
import { LinkButton } from "./parts.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { keyHeader } from "./snippets.tsx";
import type { PageUser } from "./text.ts";

/** The form that hides the first steps. */
export const FIRST_STEPS_PATH = "/overview/first-steps";

interface FirstStepsProps {
  readonly user: PageUser;
  readonly steps: FirstSteps;
  /** Where programs reach the service. */
  readonly baseUrl: string;
}

type StepName = (typeof FIRST_STEPS)[number];

const TITLES = {
  action: "Send a first action",
  approval: "Approve a request",
  agent: "Connect an agent",
  signature: "Verify a signature",
} as const satisfies Record<StepName, string>;

/** What to do first. Each step ticks itself when it was done; the next one is open. */
export function FirstStepList(props: FirstStepsProps) {
  const { user, steps } = props;
  const left = FIRST_STEPS.filter((step) => !steps.done.has(step));
  return (
    <section class="card first-steps" aria-labelledby="first-steps">
      <div class="row-between">
        <h2 id="first-steps">
          Get started{" "}
          <span class="aside small">{`${FIRST_STEPS.length - left.length} of ${FIRST_STEPS.length} done`}</span>
        </h2>
        <PostForm user={user} action={FIRST_STEPS_PATH}>
          <Button look="link">Hide</Button>
        </PostForm>
      </div>
      <ol>
        {FIRST_STEPS.map((step, at) => (
          <Step number={at + 1} title={TITLES[step]} isDone={steps.done.has(step)} isNext={step === left[0]}>
            <StepBody step={step} {...props} />
          </Step>
        ))}
      </ol>
    </section>
  );
}

interface StepProps {
  readonly number: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly isNext: boolean;
  readonly children?: Child;
}

function Step({ number: at, title, isDone, isNext, children }: StepProps) {
  if (isDone) {
    return (
      <li class="first-step first-step-done">
        <span class="first-step-mark">
          <Icon name="check" />
        </span>
        <p>
          {title} <span class="visually-hidden">done</span>
        </p>
      </li>
    );
  }
  return (
    <li class="first-step">
      <span class="first-step-mark" aria-hidden="true">
        {at}
      </span>
      <details open={isNext}>
        <summary>{title}</summary>
        <div class="stack">{children}</div>
      </details>
    </li>
  );
}

function StepBody({ step, user, baseUrl }: FirstStepsProps & { readonly step: StepName }) {
  if (step === "action") {
    return (
      <>
        <p class="quiet">
          Put an agent key into <code>OUTGATE_API_KEY</code> and run this. A key is shown once, when it is created.
        </p>
        <CodeBlock text={createCall(baseUrl, { url: "https://example.com/", method: "GET" })} label="A first action" />
        {mayDo(user.role, "manage") ? (
          <p>
            <LinkButton href="/keys/new" look="main">
              Create an agent key
            </LinkButton>
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
          text={createCall(baseUrl, {
            url: "https://example.com/",
            method: "GET",
            title: "My first request",
            approve: true,
          })}
          label="An action that needs approval"
        />
      </>
    );
  }
  if (step === "signature") return <SignatureStep user={user} />;
  return (
    <>
      <p class="quiet">
        Done when an MCP client has created an action. Ask your agent to call https://example.com/ through Outgate.
      </p>
      <Clients baseUrl={baseUrl} />
    </>
  );
}

function SignatureStep({ user }: { readonly user: PageUser }) {
  return (
    <>
      <p class="quiet">
        Let your services check that a call comes from Outgate, as <a href="/docs/verify">Verify what you receive</a>{" "}
        shows in six languages. Then paste one that arrived, or test your receiver of callbacks: this step is done when
        a signature was verified.
      </p>
      {mayDo(user.role, "manage") ? (
        <p>
          <LinkButton href={`${SETTINGS_PATHS.signing}#check`}>Check a signature</LinkButton>{" "}
          <LinkButton href={`${SETTINGS_PATHS.hosts}#callback-hosts`}>Test a receiver</LinkButton>
        </p>
      ) : (
        <p class="quiet">Ask an owner of this account for the signing secret of your service.</p>
      )}
    </>
  );
}

function createCall(baseUrl: string, request: object): string {
  return `curl -s ${baseUrl}/v1/actions ${keyHeader("OUTGATE_API_KEY")} \\\n  --json '${JSON.stringify(request)}'`;
}
