/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Action } from "../actions/action.ts";
import { normalTarget, sentUrl } from "../outbound/target.ts";
import type { CutText } from "./words.ts";
import { UntrustedText, UntrustedBlock } from "./code.tsx";
import { prettyPrint } from "../json/json.ts";
import { Table } from "./parts.tsx";
import { maskedAction } from "../receipts/masked-action.ts";
import { maskUrl } from "../receipts/masking.ts";
import type { Viewer } from "../accounts/roles.ts";

export interface RequestViewProps {
  readonly action: Action;
  /** Shown for a decision: method and URL are in the facts above. */
  readonly isAsked?: boolean;
  /** False on receipts: the path of a callback may be a secret. */
  readonly tellsCallback?: boolean;
  /** Shows the whole body without a box that scrolls. */
  readonly isWhole?: boolean;
  readonly children?: Child;
}

/**
 * The whole request of an action: untrusted text in a frame of its own. The action must be masked (`shown`). The request
 * is sent with the real values.
 */
export function RequestView({
  action,
  isAsked = false,
  tellsCallback = false,
  isWhole = isAsked,
  children,
}: RequestViewProps) {
  return (
    <section class="card" aria-labelledby="request" data-asked={isAsked ? "" : undefined}>
      <div>
        <h2 id="request">Request</h2>
        {isAsked ? <p class="quiet small">Written by the requester, and sent as shown here.</p> : null}
      </div>
      <RequestParts action={action} isAsked={isAsked} tellsCallback={tellsCallback} isWhole={isWhole} />
      {children}
    </section>
  );
}

interface RequestPartsProps extends Pick<RequestViewProps, "action" | "isAsked" | "tellsCallback" | "isWhole"> {
  /** Shows only the beginning of the body, with a link to the rest. */
  readonly cut?: (CutText & { readonly path: string }) | undefined;
}

export function RequestParts(props: RequestPartsProps) {
  const { action, cut, isAsked = false, tellsCallback = false, isWhole = false } = props;
  const { headers, body, callback } = action;
  const names = Object.keys(headers ?? {});
  return (
    <>
      {isAsked ? null : (
        <p class="line">
          <b class="method">{action.method}</b> <Address url={action.url} host={action.host} />
        </p>
      )}
      {names.length === 0 ? null : (
        <div class="stack">
          <h3>Headers</h3>
          <Table caption="Headers of the request" heads={["Name", "Value"]}>
            {names.map((name) => (
              <tr>
                <td>
                  <UntrustedText text={name} />
                </td>
                <td>
                  <UntrustedText text={headers?.[name] ?? ""} />
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
      {body === null && !isAsked ? <p class="quiet">No body is sent.</p> : null}
      {body === null ? null : <Body json={body} cut={cut} isOpen={isWhole || cut !== undefined} />}
      {callback === null || !tellsCallback ? null : (
        <div class="stack">
          <h3>Callback</h3>
          <p>
            Status changes are posted to <Address url={callback} host={hostOf(callback)} />
          </p>
        </div>
      )}
    </>
  );
}

interface BodyProps extends Pick<RequestPartsProps, "cut"> {
  readonly json: string;
  readonly isOpen: boolean;
}

function Body({ json, cut, isOpen }: BodyProps) {
  return (
    <div class="stack">
      <h3>
        Body <span class="aside">JSON</span>
      </h3>
      <UntrustedBlock label="Body of the request" text={cut?.shown ?? prettyPrint(json)} isOpen={isOpen} />
      {typeof cut?.rest === "string" ? (
        <p class="notice notice-wait">
          <b>{cut.rest} not shown.</b> <a href={cut.path}>View the whole request</a>
        </p>
      ) : null}
    </div>
  );
}

function hostOf(url: string): string {
  return normalTarget(url)?.host ?? "";
}

/** An untrusted URL with its host in bold. Never a link. */
export function Address({ url, host }: { readonly url: string; readonly host: string }) {
  const start = url.indexOf("//") + 2;
  if (!url.startsWith(host, start)) return <UntrustedText text={url} />;
  return (
    <span class="address">
      <UntrustedText text={url.slice(0, start)} />
      <b>
        <UntrustedText text={host} />
      </b>
      <UntrustedText text={url.slice(start + host.length)} />
    </span>
  );
}

/** The response to the newest attempt. */
export function Answer({ action }: { readonly action: Action }) {
  const { result } = action;
  if (result === null) return null;
  const { responseCode, responseBody, responseTruncated, lastError } = result;
  const answer = responseBody === null ? null : shownAnswer(responseBody);
  return (
    <section class="card" aria-labelledby="response">
      <h2 id="response">Response</h2>
      <p>{responseCode === null ? (lastError ?? "No response.") : `Status ${responseCode}`}</p>
      {answer === null && responseCode !== null ? <p class="quiet">The response had no body.</p> : null}
      {answer === null ? null : (
        <div class="stack">
          <h3>
            Body{" "}
            <span class="aside">
              {answer.kind}
              {responseTruncated ? ", truncated: it was longer than the limit" : ""}
            </span>
          </h3>
          {answer.text === null ? (
            <p class="quiet">Binary content is not shown.</p>
          ) : (
            <UntrustedBlock label="Body of the response" text={answer.text} />
          )}
        </div>
      )}
    </section>
  );
}

/** Masks an action for a viewer, with the URL as it is sent. Every page that shows an action uses it. */
export function shown(action: Action, viewer: Viewer): Action {
  return { ...maskedAction(action, viewer), url: maskUrl(sentUrl(action.url), viewer) };
}

/** Path, query and fragment of the URL. */
export function pathOf({ url, host }: Pick<Action, "url" | "host">): string {
  return url.slice(url.indexOf("//") + "//".length + host.length);
}

/** A response body as text. */
export interface ShownAnswer {
  readonly kind: "JSON" | "Text" | "Bytes";
  /** Null for binary data. */
  readonly text: string | null;
}

/** A stored response body for display: formatted JSON, text, or nothing for binary data. */
export function shownAnswer(json: string): ShownAnswer {
  if (json.startsWith('{"encoding":"base64"')) return { kind: "Bytes", text: null };
  if (!json.startsWith('"')) return { kind: "JSON", text: prettyPrint(json) };
  const text: unknown = JSON.parse(json);
  return { kind: "Text", text: String(text) };
}
