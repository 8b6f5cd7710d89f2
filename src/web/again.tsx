/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { Button, FormToken } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { actionPath } from "./list-path.ts";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import type { PageUser } from "./visitor.ts";

export interface ResendPageProps {
  readonly action: Action;
  readonly user: PageUser;
  /** An attempt may have been received without anybody knowing: that has to be said yes to. */
  readonly isUnknown: boolean;
  readonly problem?: string;
}

/** Asks before the same request is made as a new action, and says what differs from a retry. */
export function resendPage({ user, isUnknown, problem, ...props }: ResendPageProps): string {
  const action = shown(props.action, "decider");
  return render(
    <Layout title={`Send again: ${action.method} ${action.host}`} place="Actions" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href={actionPath(action.id)}>Back to the action</a>
        </p>
        <h1>Send this again as a new action?</h1>
        <p>
          It gets an id and an Idempotency-Key of its own, so its target takes it for a new request.
          {action.approve ? " It is held for approval, as this one was." : " It is sent at once."}
        </p>
      </div>
      <RequestView action={action} tellsCallback />
      <form class="card" method="post" action={`${actionPath(action.id)}/again`}>
        <FormToken user={user} />
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        {isUnknown ? (
          <>
            <Notice tone="wait">
              Nobody knows how an attempt of it ended: the target may have done already what it asks for.
            </Notice>
            <label class="check">
              <input type="checkbox" name="sure" value="yes" required />
              <span>Send it although the target may have received it</span>
            </label>
          </>
        ) : null}
        <div class="buttons">
          <Button>Send as a new action</Button>
        </div>
      </form>
      <p class="foot">Secrets are shown as ••••; the request is sent with them.</p>
    </Layout>,
  );
}
