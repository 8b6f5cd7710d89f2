/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Action } from "../domain/action.ts";
import { normalTarget } from "../domain/normal-target.ts";
import { Foreign, ForeignBlock } from "./foreign.tsx";
import { setOut } from "./json-text.ts";
import { Table } from "./parts.tsx";

export interface RequestViewProps {
  readonly action: Action;
  /** Somebody has to decide on it: its facts stand above, and they are told whose words these are. */
  readonly isAsked?: boolean;
  /** A receipt never tells where news goes to: the path of a callback may be a secret. */
  readonly tellsCallback?: boolean;
  /** Stands below it. */
  readonly children?: Child;
}

/**
 * The request of an action, whole: the words of whoever asked, in a frame that nothing of ours stands in. The action is
 * masked by now (`shown`); what is sent is the same with its secrets.
 */
export function RequestView({ action, isAsked = false, tellsCallback = false, children }: RequestViewProps) {
  return (
    <section class="card" aria-labelledby="request" data-asked={isAsked ? "" : undefined}>
      <div>
        <h2 id="request">Request</h2>
        {isAsked ? <p class="quiet small">Written by whoever asked, and sent as it stands here.</p> : null}
      </div>
      <RequestParts action={action} isAsked={isAsked} tellsCallback={tellsCallback} />
      {children}
    </section>
  );
}

interface RequestPartsProps extends Pick<RequestViewProps, "action" | "isAsked" | "tellsCallback"> {
  readonly isLow?: boolean;
}

/** Its parts, one below the other, for whatever frame they stand in. */
export function RequestParts({ action, isLow = false, isAsked = false, tellsCallback = false }: RequestPartsProps) {
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
                  <Foreign text={name} />
                </td>
                <td>
                  <Foreign text={headers?.[name] ?? ""} />
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
      {body === null ? (
        <p class="quiet">No body is sent.</p>
      ) : (
        <div class="stack">
          <h3>
            Body <span class="aside">JSON</span>
          </h3>
          <ForeignBlock label="Body of the request" text={setOut(body)} isLow={isLow} />
        </div>
      )}
      {callback === null || !tellsCallback ? null : (
        <div class="stack">
          <h3>Callback</h3>
          <p>
            What becomes of it, held or sent, is posted to <Address url={callback} host={hostOf(callback)} />
          </p>
        </div>
      )}
    </>
  );
}

function hostOf(url: string): string {
  return normalTarget(url)?.host ?? "";
}

/** A URL with its host told from the rest: text, never a link. */
export function Address({ url, host }: { readonly url: string; readonly host: string }) {
  const start = url.indexOf("//") + 2;
  if (!url.startsWith(host, start)) return <Foreign text={url} />;
  return (
    <span class="address">
      <Foreign text={url.slice(0, start)} />
      <b>
        <Foreign text={host} />
      </b>
      <Foreign text={url.slice(start + host.length)} />
    </span>
  );
}
