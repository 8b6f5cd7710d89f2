/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { usedBodyMember } from "../core/body.ts";
import { describeCredential } from "../core/credential.ts";
import { prettyPrint } from "../core/json.ts";
import { BodyView, limitsOnPage, type PageBody, pageBody, WholeBody } from "./body-view.tsx";
import { Copied } from "./controls.tsx";
import { Button, PostForm } from "./form.tsx";
import { Icon } from "./icons.tsx";
import { actionPath, Layout, render } from "./layout.tsx";
import { PageHead, SubSection, Table, untrustedPath, untrusted } from "./parts.tsx";
import type { PageUser } from "./text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { visibleText } from "../receipts/visible-text.ts";

export function callText({ method, host }: Pick<SeenAction, "method" | "host">): string {
  return `${method} ${visibleText(host)}`;
}

interface RequestPartsProps {
  readonly action: SeenAction;
  /** The body, cut if long; left out: as much as fits on a page. */
  readonly body?: PageBody | null;
  /** Whether method and URL are shown above, as for a decision. Then the body comes first. */
  readonly isAsked?: boolean;
  /** Whether to show the body without a scrolling box. */
  readonly isOpen?: boolean;
  /** Whether to add a button that copies the body. */
  readonly canCopy?: boolean;
  /** The page of the whole body, if only the beginning is shown here; left out: all of it is here. */
  readonly bodyPath?: string;
  /** A link to the rest of the body, if `bodyPath` is left out. */
  readonly more?: Child;
}

/** The request of an action, with untrusted text in frames. The real values are sent. */
export function RequestParts(props: RequestPartsProps) {
  const { action, isAsked = false, isOpen = false, canCopy = false, bodyPath: path, more } = props;
  const { headers } = action;
  const { body = pageBody(action, path === undefined ? undefined : limitsOnPage(action)) } = props;
  const fields = Object.entries(headers ?? {});
  const headerTable =
    fields.length === 0 ? null : (
      <SubSection title="Headers">
        <Table
          caption="Headers of the request"
          heads={["Name", "Value"]}
          rows={fields.map((texts) => texts.map((text) => untrusted(text)))}
        />
      </SubSection>
    );
  return (
    <>
      {isAsked ? null : <p class="line">{callLine(action)}</p>}
      <WithCredential action={action} />
      {isAsked ? null : headerTable}
      {body === null && !isAsked ? <p class="quiet">No body is sent.</p> : null}
      {body === null ? null : (
        <BodyView
          body={body}
          isOpen={isOpen}
          copied={canCopy && limitsOnPage(action) === undefined ? copiedBody(action) : null}
          whole={path === undefined ? undefined : { actionId: action.id, path }}
          more={more}
        />
      )}
      {isAsked ? headerTable : null}
    </>
  );
}

/** "with stripe-live (Bearer, ••••4242)". Nobody sees more of the secret. */
function WithCredential({ action: { extras } }: { readonly action: SeenAction }) {
  const { credential } = extras;
  if (credential === undefined) return null;
  const { name } = credential;
  return (
    <p>
      <Icon name="keys" /> with {untrusted(name)}
      {describeCredential(credential).slice(name.length)}
    </p>
  );
}

/** The body for copying: the shown text, or a form in its own encoding; null for bytes. */
function copiedBody(action: SeenAction): string | null {
  const member = usedBodyMember(action);
  if (action.body === null || member === "base64") return null;
  return member === "form" || member === "text" ? action.body : prettyPrint(action.body);
}

/** Method and URL. */
export function callLine({ method, url, host }: Pick<SeenAction, "method" | "url" | "host">, { canCopy = false } = {}) {
  const address = untrustedUrl(url, host);
  return (
    <>
      <b class="method">{method}</b> {canCopy ? <Copied what="the URL">{address}</Copied> : address}
    </>
  );
}

/** An untrusted URL with its host in bold, never as a link. */
export function untrustedUrl(url: string, host: string) {
  const start = url.indexOf("//") + 2;
  if (!url.startsWith(host, start)) return untrusted(url);
  return (
    <span class="address">
      {untrusted(url.slice(0, start))}
      <b>{untrusted(host)}</b>
      {untrustedPath(url.slice(start + host.length))}
    </span>
  );
}

interface RevealFormProps {
  readonly user: PageUser;
  readonly id: string;
  readonly look?: "plain" | "link";
}

/** The button that shows secrets. Sends a POST, so that they are on a page of their own and no link leads to them. */
export function RevealForm({ user, id, look = "plain" }: RevealFormProps) {
  return (
    <PostForm user={user} action={`${actionPath(id)}/reveal`}>
      <div class="buttons">
        <Button look={look}>Show secrets</Button>
      </div>
    </PostForm>
  );
}

export function bodyPath(actionId: string): string {
  return `${actionPath(actionId)}/body`;
}

interface BodyPageProps {
  readonly action: SeenAction;
  readonly back: { readonly href: string; readonly name: string };
  /** Null if it was opened by a link without a login. */
  readonly user: PageUser | null;
}

/** The whole body of a request. A page without script; with script, it replaces the beginning. */
export function bodyPage({ action, back, user }: BodyPageProps): string {
  const title = `Body of ${action.method} ${action.host}`;
  return render(
    <Layout title={title} nav="Approvals" user={user} isStandalone={user === null}>
      <PageHead title="Body of the request" back={back}>
        <p>{callLine(action)}</p>
      </PageHead>
      <section class="card">
        <WholeBody action={action} />
      </section>
    </Layout>,
  );
}
