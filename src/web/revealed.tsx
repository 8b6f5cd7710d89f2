/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { sentUrl } from "../domain/sent-url.ts";
import { Answer } from "./answer.tsx";
import { DecisionForm } from "./confirm.tsx";
import { Layout } from "./layout.tsx";
import { actionPath } from "./list-path.ts";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import type { PageUser } from "./visitor.ts";

/** Request and answer as they are, for whoever may see secrets and has asked to. No address leads here. */
export function revealedPage({ action, user }: { readonly action: Action; readonly user: PageUser }): string {
  const isHeld = action.status === "awaiting_approval";
  return render(
    <Layout title={`Secrets of ${action.method} ${action.host}`} place="Actions" user={user}>
      <div class="head">
        <p class="small">
          <a href={actionPath(action.id)}>Hide them</a>
        </p>
        <h1>
          {action.method} {action.host}
        </h1>
      </div>
      <Notice tone="wait">Secrets are shown as they are. They are gone when you leave this page.</Notice>
      <RequestView action={{ ...action, url: sentUrl(action.url) }} tellsCallback={isHeld} isWhole={isHeld} />
      <Answer action={action} />
      {isHeld ? (
        <section class="card" aria-labelledby="decision">
          <h2 id="decision">Your decision</h2>
          <DecisionForm user={user} run={action.run} path={actionPath(action.id)} about={action} />
        </section>
      ) : null}
    </Layout>,
  );
}
