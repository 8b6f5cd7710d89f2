/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { sentUrl } from "../domain/sent-url.ts";
import { Answer } from "./answer.tsx";
import { Layout } from "./layout.tsx";
import { actionPath } from "./list-path.ts";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import type { Visitor } from "./visitor.ts";

/** Request and answer as they are, for whoever may see secrets and has asked to. No address leads here. */
export function revealedPage({ action, visitor }: { readonly action: Action; readonly visitor: Visitor }): string {
  return render(
    <Layout title={`Secrets of ${action.method} ${action.host}`} place="Actions" visitor={visitor}>
      <div class="head">
        <p class="small">
          <a href={actionPath(action.id)}>Hide them</a>
        </p>
        <h1>
          {action.method} {action.host}
        </h1>
      </div>
      <Notice tone="wait">Secrets are shown as they are. They are gone when you leave this page.</Notice>
      <RequestView action={{ ...action, url: sentUrl(action.url) }} />
      <Answer action={action} />
    </Layout>,
  );
}
