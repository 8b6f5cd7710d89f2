/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { pathNotFound } from "../http/errors.ts";
import { bodyPart, WholeBody } from "../ui/body-view.tsx";
import { actionPath, Layout, render } from "../ui/layout.tsx";
import { PageHead } from "../ui/parts.tsx";
import { UntrustedUrl } from "./request.tsx";
import type { PageUser } from "../ui/text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";

/** The page of the whole body of an action. */
export function bodyPath(actionId: string): string {
  return `${actionPath(actionId)}/body`;
}

interface BodyPageProps {
  readonly action: SeenAction;
  /** Of its address: a part alone is shown. */
  readonly search: string;
  /** Where the request is. */
  readonly back: { readonly href: string; readonly name: string };
  /** Null: it was opened by a link, without a log-in. */
  readonly user: PageUser | null;
}

/**
 * The whole body of a request, or the end of one of its lists: a page where no script runs, and else the text that takes the
 * place of the link to it. Throws `not_found` where there is no such part.
 */
export function bodyPage({ action, search, back, user }: BodyPageProps): string {
  const content = contentOf(action, new URLSearchParams(search));
  if (content === null) throw pathNotFound();
  const { method, url, host } = action;
  const title = `Body of ${method} ${host}`;
  const page = (
    <>
      <PageHead title="Body of the request" back={back}>
        <p>
          <b class="method">{method}</b> <UntrustedUrl url={url} host={host} />
        </p>
      </PageHead>
      <section class="card">{content}</section>
    </>
  );
  return render(
    user === null ? (
      <Layout title={title} isStandalone>
        {page}
      </Layout>
    ) : (
      <Layout title={title} nav="Approvals" user={user}>
        {page}
      </Layout>
    ),
  );
}

function contentOf(action: SeenAction, query: URLSearchParams): Child | null {
  const from = query.get("from");
  if (from === null) return <WholeBody action={action} />;
  const at = query.get("at") ?? "";
  return PLACE.test(at) && FROM.test(from) ? bodyPart(action, at, Number(from)) : null;
}

/** JSON has at most 64 levels and 10,000 members. */
const PLACE = /^(?:\d{1,5}(?:\.\d{1,5}){0,63})?$/;

const FROM = /^\d{1,5}$/;
