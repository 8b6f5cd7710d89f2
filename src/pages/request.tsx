/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { bodyMemberOf } from "../core/body.ts";
import { describeCredential } from "../core/credential.ts";
import { prettyPrint } from "../core/json.ts";
import { normalTarget } from "../core/target.ts";
import { BodyView, limitsOnPage, type PageBody, pageBody, WholeBody } from "../ui/body-view.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import { Icon } from "../ui/icons.tsx";
import { actionPath, Layout, render } from "../ui/layout.tsx";
import { Card, PageHead, SubSection, Table, UntrustedPath, UntrustedText } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { visibleText } from "../receipts/visible-text.ts";

export function callText({ method, host }: Pick<SeenAction, "method" | "host">): string {
  return `${method} ${visibleText(host)}`;
}

interface RequestViewProps {
  readonly action: SeenAction;
  /** False on receipts: the path of a callback may be a secret. */
  readonly tellsCallback?: boolean;
  /** Shows the whole body without a box that scrolls. */
  readonly isWhole?: boolean;
  readonly aside?: Child;
  /** With a button that copies the body. */
  readonly canCopy?: boolean;
  /** The page of the whole body: of a long one the beginning is shown. Left out: all of it is on this page. */
  readonly bodyPath?: string;
}

/**
 * The whole request of an action: untrusted text in a frame of its own. The request is sent with the real values.
 */
export function RequestView({ aside = null, ...parts }: RequestViewProps) {
  return (
    <Card id="request" title="Request" aside={aside}>
      <RequestParts {...parts} />
    </Card>
  );
}

interface RequestPartsProps extends Omit<RequestViewProps, "aside"> {
  /** Shown for a decision: method and URL are in the facts above, and the body comes first. */
  readonly isAsked?: boolean;
  /** The body cut, and on a receipt where to see the rest. */
  readonly cut?: { readonly body: PageBody; readonly path: string | null } | undefined;
  /** What kind of body it is, and how large, as `bodyKindText` says. */
  readonly bodyKind?: string;
}

export function RequestParts(props: RequestPartsProps) {
  const { action, cut, bodyKind, bodyPath: path } = props;
  const { canCopy = false, isAsked = false, tellsCallback = false, isWhole = false } = props;
  const { headers, callback } = action;
  const body = cut?.body ?? pageBody(action, path === undefined ? undefined : limitsOnPage(action));
  const fields = Object.entries(headers ?? {});
  const headerTable =
    fields.length === 0 ? null : (
      <SubSection title="Headers">
        <Table
          caption="Headers of the request"
          heads={["Name", "Value"]}
          rows={fields.map((texts) => texts.map((text) => <UntrustedText text={text} />))}
        />
      </SubSection>
    );
  return (
    <>
      {isAsked ? null : (
        <p class="line">
          <CallLine action={action} />
        </p>
      )}
      <WithCredential action={action} />
      {isAsked ? null : headerTable}
      {body === null && !isAsked ? <p class="quiet">No body is sent.</p> : null}
      {body === null ? null : (
        <BodyView
          body={bodyKind === undefined ? body : { ...body, kind: bodyKind }}
          isOpen={isWhole || cut !== undefined}
          copied={canCopy && limitsOnPage(action) === undefined ? copiedBody(action) : null}
          whole={path === undefined ? undefined : { actionId: action.id, path }}
        >
          {path !== undefined ? null : (
            <p class="notice notice-wait">
              <b>{body.rest} not shown.</b>{" "}
              {cut === undefined || cut.path === null ? null : <a href={cut.path}>View the whole request</a>}
            </p>
          )}
        </BodyView>
      )}
      {isAsked ? headerTable : null}
      {callback === null || !tellsCallback ? null : (
        <SubSection title="Callback">
          <p>
            Status changes are posted to <UntrustedUrl url={callback} host={normalTarget(callback)?.host ?? ""} />
          </p>
        </SubSection>
      )}
    </>
  );
}

/** "with stripe-live (Bearer, ••••4242)": nobody sees more of the secret. */
function WithCredential({ action: { extras } }: { readonly action: SeenAction }) {
  const { credential } = extras;
  if (credential === undefined) return null;
  const { name } = credential;
  return (
    <p>
      <Icon name="keys" /> with <UntrustedText text={name} />
      {describeCredential(credential).slice(name.length)}
    </p>
  );
}

/** The body as it is copied: what is shown, or a form in its own encoding; null: bytes. */
function copiedBody(action: SeenAction): string | null {
  const member = bodyMemberOf(action);
  if (action.body === null || member === "base64") return null;
  return member === "form" || member === "text" ? action.body : prettyPrint(action.body);
}

/** Method and URL. */
export function CallLine({
  action: { method, url, host },
}: {
  readonly action: Pick<SeenAction, "method" | "url" | "host">;
}) {
  return (
    <>
      <b class="method">{method}</b> <UntrustedUrl url={url} host={host} />
    </>
  );
}

/** An untrusted URL with its host in bold. Never a link. */
export function UntrustedUrl({ url, host }: { readonly url: string; readonly host: string }) {
  const start = url.indexOf("//") + 2;
  if (!url.startsWith(host, start)) return <UntrustedText text={url} />;
  return (
    <span class="address">
      <UntrustedText text={url.slice(0, start)} />
      <b>
        <UntrustedText text={host} />
      </b>
      <UntrustedPath text={url.slice(start + host.length)} />
    </span>
  );
}

interface RevealFormProps {
  readonly user: PageUser;
  readonly id: string;
  readonly look?: "plain" | "link";
  readonly name?: string;
}

/** A POST form, so that secrets are on a page of their own and nothing that follows links gets them. */
export function RevealForm({ user, id, look = "plain", name = "Show secrets" }: RevealFormProps) {
  return (
    <PostForm user={user} action={`${actionPath(id)}/reveal`}>
      <div class="buttons">
        <Button look={look}>{name}</Button>
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
  /** Null: it was opened by a link, without a log-in. */
  readonly user: PageUser | null;
}

/** The whole body of a request: a page where no script runs, and else what takes the place of its beginning. */
export function bodyPage({ action, back, user }: BodyPageProps): string {
  const title = `Body of ${action.method} ${action.host}`;
  return render(
    <Layout title={title} nav="Approvals" user={user} isStandalone={user === null}>
      <PageHead title="Body of the request" back={back}>
        <p>
          <CallLine action={action} />
        </p>
      </PageHead>
      <section class="card">
        <WholeBody action={action} />
      </section>
    </Layout>,
  );
}
