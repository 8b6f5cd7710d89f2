/** @jsxImportSource hono/jsx */
import type { Result } from "../../core/action.ts";
import type { PastAttempt } from "../../core/changes.ts";
import { prettyPrint } from "../../core/json.ts";
import { statusSentence } from "../../core/outcome.ts";
import { readHeaders } from "../../receipts/response-headers.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";
import { CopiedBody, shownTree } from "../../ui/body-view.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Card, Dot, sentence, SubSection, Table, time, UntrustedBlock, untrusted } from "../../ui/parts.tsx";
import { counted, cutAt, duration } from "../../ui/text.ts";

interface AttemptResponseProps {
  readonly action: SeenAction;
  /** Masked for the reader; null if none of this run has ended, but some of earlier runs have. */
  readonly attempt: PastAttempt | null;
  /** Whether another attempt came after it. */
  readonly isOld: boolean;
}

export function AttemptResponse({ action, attempt, isOld }: AttemptResponseProps) {
  if (attempt === null) {
    return (
      <Card id="response" title="Response">
        <p class="quiet">{`Run ${action.run} has no response yet. Choose an attempt of an earlier run to see its own.`}</p>
      </Card>
    );
  }
  const { made, at, run, responseHeaders, responseBody, responseTruncated } = attempt;
  const { response_code: code, duration_ms: ms } = made;
  const isOther = run !== action.run;
  const headers = readHeaders(responseHeaders);
  return (
    <Card
      id="response"
      title={sentence`Response${(
        <span class="aside">{`${isOther ? `Run ${run}, attempt` : "Attempt"} ${made.attempt}${made.late === undefined ? "" : ", late"}`}</span>
      )}`}
      aside={
        <p class="between">
          <Dot tone={made.error === null ? "good" : "bad"}>{code === null ? "No response" : String(code)}</Dot>
          {ms === null ? null : <span class="quiet">{duration(ms)}</span>}
          <span class="quiet">{time(at)}</span>
        </p>
      }
    >
      {isOld ? <p class="quiet small">A later attempt followed this one.</p> : null}
      {made.error === null || (code !== null && made.error === statusSentence(code)) ? null : <p>{made.error}</p>}
      {made.location === null ? null : <p>Redirects to {untrusted(made.location)}</p>}
      {headers.length === 0 ? null : (
        <details class="fold">
          <summary>{counted(headers.length, "header")}</summary>
          <Table
            caption="Headers of the response"
            heads={["Name", "Value"]}
            rows={headers.map((pair) => pair.map((text) => untrusted(text)))}
          />
        </details>
      )}
      {responseBody === null ? (
        <p class="quiet">{noBodyText(attempt, isOld)}</p>
      ) : (
        <ResponseBody json={responseBody} isCut={responseTruncated} canCopy />
      )}
    </Card>
  );
}

/** Why there is no body. Earlier versions kept only the last response. */
function noBodyText({ made, responseHeaders }: PastAttempt, isOld: boolean): string {
  if (made.response_code === null) return "No whole response arrived.";
  return isOld && responseHeaders === null ? "Its body was not kept." : "The response had no body.";
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
  return (
    <Card id={id} title={title}>
      <p>{responseCode === null ? (lastError ?? "No response.") : `Status ${responseCode}`}</p>
      {responseBody === null && responseCode !== null ? <p class="quiet">The response had no body.</p> : null}
      {responseBody === null ? null : (
        <ResponseBody json={responseBody} isCut={responseTruncated} charsMax={charsMax} />
      )}
    </Card>
  );
}

interface ResponseBodyProps {
  /** The stored text. */
  readonly json: string;
  /** Whether its end was not stored. */
  readonly isCut: boolean;
  readonly charsMax?: number;
  /** Whether to add a button that copies the text. */
  readonly canCopy?: boolean;
}

/** Shows JSON as a tree, and anything else as text. */
function ResponseBody({ json, isCut, charsMax = Number.POSITIVE_INFINITY, canCopy = false }: ResponseBodyProps) {
  const { kind, text } = responseText(json);
  const label = "Body of the response";
  const tree = kind === "JSON" && json.length <= charsMax ? shownTree(json) : null;
  const { beginning, rest } = cutAt(text ?? "", charsMax);
  return (
    <SubSection
      title={sentence`Body ${<span class="aside">{`${kind}${isCut ? ", cut: it was longer than the limit" : ""}`}</span>}`}
    >
      {canCopy && text !== null && tree !== null ? <CopiedBody text={text} /> : null}
      {text === null ? <p class="quiet">Binary content is not shown.</p> : null}
      {tree === null ? null : <JsonView label={label} tree={tree} />}
      {tree !== null || text === null ? null : (
        <div data-copy={canCopy ? "" : undefined}>
          <UntrustedBlock label={label} text={beginning} />
        </div>
      )}
      {rest === null || tree !== null ? null : (
        <p class="notice notice-wait">
          <b>{rest} not shown.</b>
        </p>
      )}
    </SubSection>
  );
}

/** A stored response body for display: formatted JSON, text, or null for binary data. */
export function responseText(json: string) {
  if (json.startsWith('{"encoding":"base64"')) return { kind: "Bytes", text: null };
  if (!json.startsWith('"')) return { kind: "JSON", text: prettyPrint(json) };
  const text: unknown = JSON.parse(json);
  return { kind: "Text", text: String(text) };
}
