/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { REASON_CHARS_MAX } from "../domain/limits.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
import type { Unusual } from "../domain/unusual.ts";
import { visibleText } from "../domain/visible.ts";
import { Earlier } from "./earlier.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { Who } from "./happening.tsx";
import { Layout } from "./layout.tsx";
import { Facts, Notice, Time } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import { waitingWords } from "./summary.ts";
import { UnusualChips } from "./unusual.tsx";
import type { Visitor } from "./visitor.ts";

export interface ConfirmProps {
  readonly action: Action;
  readonly expiresAt: Date;
  readonly unusual: readonly Unusual[];
  /** What was said about the request before. */
  readonly earlier: readonly EarlierRejection[];
  /** What was wrong with what was sent before; what was typed stands there still. */
  readonly problem?: string;
  readonly reason?: string;
}

/** What an approval link opens: the exact request, masked, and two buttons of one size (decisions 7, hostile 7). */
export function confirmPage(props: ConfirmProps): string {
  const action = shown(props.action);
  return render(
    <Layout title="Approve a request?" isAlone>
      <div class="head">
        <p class="quiet small">Approval</p>
        <h1>Approve this request?</h1>
        <p>{waitingWords(action)}</p>
        <UnusualChips unusual={props.unusual} />
        <Earlier entries={props.earlier} />
      </div>
      <section class="card" aria-label="What is asked for">
        <Asked action={action} expiresAt={props.expiresAt} />
      </section>
      <RequestView action={action} isAsked />
      <section class="card" aria-labelledby="decision">
        <h2 id="decision">Your decision</h2>
        {props.problem === undefined ? null : <Notice tone="bad">{props.problem}</Notice>}
        <DecisionForm reason={props.reason} />
      </section>
      <p class="foot">Secrets are shown as ••••; the request is sent with them.</p>
    </Layout>,
  );
}

/** Who asks for what, in our words, above what is in theirs. */
export function Asked({ action, expiresAt }: { readonly action: Action; readonly expiresAt: Date | null }) {
  return (
    <Facts
      rows={[
        [
          "Call",
          <>
            <b>{action.method}</b> to <b class="theirs">{action.host}</b>
          </>,
        ],
        ["Asked by", <Who actor={action.createdBy} />],
        ["Asked at", <Time at={action.createdAt} />],
        ["Attempts", action.retries === 1 ? "one" : `up to ${action.retries}, until one succeeds`],
        ["Link works until", expiresAt === null ? null : <Time at={expiresAt} />],
      ]}
    />
  );
}

export interface DecisionFormProps {
  readonly reason?: string | undefined;
  /** Of a page of the inbox: whose session it is. */
  readonly visitor?: Visitor;
  /** Which run was looked at; a link knows its own. */
  readonly run?: number;
  /** Where it is sent; to the page that it stands on unless it is said. */
  readonly path?: string;
  /** What is decided on, for the questions of the keys, and where one page has several such forms. */
  readonly about?: Pick<Action, "id" | "method" | "host">;
}

/** The two buttons, and a word with them. */
export function DecisionForm({ reason = "", visitor, run, path, about }: DecisionFormProps) {
  const call = about === undefined ? "" : `${about.method} ${visibleText(about.host)}`;
  return (
    <form method="post" action={path}>
      {visitor === undefined ? null : <FormToken visitor={visitor} />}
      {run === undefined ? null : <input type="hidden" name="run" value={run} />}
      <Field
        name="reason"
        label="Reason"
        type="lines"
        value={reason}
        hint="If you like. Whoever asked reads it, and it stands on the receipt."
        charsMax={REASON_CHARS_MAX}
        idSuffix={about === undefined ? "" : `-${about.id}`}
      />
      <div class="choices">
        <Button
          name="decision"
          value="approve"
          {...(about === undefined ? {} : { hotkey: { key: "a", question: `Approve ${call}?` } })}
        >
          Approve
        </Button>
        <Button
          name="decision"
          value="reject"
          look="bad"
          {...(about === undefined ? {} : { hotkey: { key: "x", question: `Reject ${call}?` } })}
        >
          Reject
        </Button>
      </div>
    </form>
  );
}
