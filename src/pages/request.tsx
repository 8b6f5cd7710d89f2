/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Result } from "../core/action.ts";
import { bodyMemberOf } from "../core/body.ts";
import { describeCredential } from "../core/credential.ts";
import { prettyPrint } from "../core/json.ts";
import { normalTarget } from "../core/target.ts";
import { bodyParts, bodyTree, BodyView, limitsOnPage, type PageBody, pageBody } from "../ui/body-view.tsx";
import { JsonView } from "../ui/json-view.tsx";
import { Icon } from "../ui/icons.tsx";
import { Card, sentence, SubSection, Table, UntrustedBlock, UntrustedPath, UntrustedText } from "../ui/parts.tsx";
import { cutAt } from "../ui/text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";

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
    <section class="card" aria-labelledby="request">
      <div class="card-head">
        <div>
          <h2 id="request">Request</h2>
        </div>
        {aside}
      </div>
      <RequestParts {...parts} />
    </section>
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
  const { action, cut, bodyKind, bodyPath } = props;
  const { canCopy = false, isAsked = false, tellsCallback = false, isWhole = false } = props;
  const { method, url, host, headers, callback } = action;
  const body = cut?.body ?? pageBody(action, bodyPath === undefined ? undefined : limitsOnPage(action));
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
          <b class="method">{method}</b> <UntrustedUrl url={url} host={host} />
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
          parts={bodyPath === undefined ? undefined : bodyParts(action.id, bodyPath)}
        >
          {bodyPath !== undefined ? null : (
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
    <p class="with-credential">
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

/** The response to the newest attempt. `charsMax`: how many characters of the body are shown. */
export function ResponseView(props: { readonly action: SeenAction; readonly charsMax?: number }) {
  const { charsMax = Number.POSITIVE_INFINITY } = props;
  const { result, lateResult } = props.action;
  return (
    <>
      {result === null ? null : <ResponseCard id="response" title="Response" result={result} charsMax={charsMax} />}
      {lateResult === null ? null : (
        <ResponseCard
          id="late-response"
          title={`Late response to attempt ${lateResult.attempt} of run ${lateResult.run}`}
          result={lateResult}
          charsMax={charsMax}
        />
      )}
    </>
  );
}

interface ResponseCardProps {
  readonly id: string;
  readonly title: string;
  readonly charsMax: number;
  readonly result: Pick<Result, "responseCode" | "responseBody" | "responseTruncated"> &
    Partial<Pick<Result, "lastError">>;
}

function ResponseCard({ id, title, result, charsMax }: ResponseCardProps) {
  const { responseCode, responseBody, responseTruncated, lastError } = result;
  const body = responseBody === null ? null : responseText(responseBody);
  const cut = responseTruncated ? ", truncated: it was longer than the limit" : "";
  return (
    <Card id={id} title={title}>
      <p>{responseCode === null ? (lastError ?? "No response.") : `Status ${responseCode}`}</p>
      {body === null && responseCode !== null ? <p class="quiet">The response had no body.</p> : null}
      {body === null ? null : (
        <SubSection title={sentence`Body ${<span class="aside">{`${body.kind}${cut}`}</span>}`}>
          {body.text === null ? (
            <p class="quiet">Binary content is not shown.</p>
          ) : (
            <ResponseBody json={responseBody ?? ""} kind={body.kind} text={body.text} charsMax={charsMax} />
          )}
        </SubSection>
      )}
    </Card>
  );
}

interface ResponseBodyProps extends Pick<ResponseCardProps, "charsMax"> {
  readonly json: string;
  readonly kind: string;
  readonly text: string;
}

function ResponseBody({ json, kind, text, charsMax }: ResponseBodyProps) {
  const label = "Body of the response";
  const tree = kind === "JSON" && json.length <= charsMax ? bodyTree(json) : null;
  if (tree !== null) return <JsonView label={label} tree={tree} />;
  const { beginning, rest } = cutAt(text, charsMax);
  return (
    <>
      <UntrustedBlock label={label} text={beginning} />
      {rest === null ? null : (
        <p class="notice notice-wait">
          <b>{rest} not shown.</b>
        </p>
      )}
    </>
  );
}

interface ResponseText {
  readonly kind: "JSON" | "Text" | "Bytes";
  /** Null for binary data. */
  readonly text: string | null;
}

/** A stored response body for display: formatted JSON, text, or nothing for binary data. */
export function responseText(json: string): ResponseText {
  if (json.startsWith('{"encoding":"base64"')) return { kind: "Bytes", text: null };
  if (!json.startsWith('"')) return { kind: "JSON", text: prettyPrint(json) };
  const text: unknown = JSON.parse(json);
  return { kind: "Text", text: String(text) };
}
