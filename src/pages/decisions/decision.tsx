/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import {
  type DecisionFactsJson,
  type DecisionHistory,
  type Fact,
  type FactName,
  maskedFacts,
} from "../../approvals/facts.ts";
import type { RISKS } from "../../approvals/risks.ts";
import { requestedRunAt, REQUESTER_TEXTS } from "../../core/action.ts";
import type { ActionPolicy } from "../../core/action-policy.ts";
import { describeActor, mayDo } from "../../core/roles.ts";
import { normalTarget } from "../../core/target.ts";
import { bodyKindText } from "../../receipts/mask-body.ts";
import { MASK } from "../../receipts/mask-rules.ts";
import { asSent, hiddenValuesText } from "../../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../../receipts/seen-action.ts";
import { visibleText } from "../../receipts/visible-text.ts";
import { BEGINNING, limitsOnPage, type PageBody, pageBody } from "../../ui/body-view.tsx";
import { Copied } from "../../ui/controls.tsx";
import { actionPath } from "../../ui/layout.tsx";
import { ago, Problem, sentence, timeInWords, untrustedLines, untrusted } from "../../ui/parts.tsx";
import { type PageUser, waitingText } from "../../ui/text.ts";
import { DecisionForm, EndOfRequest, type RefusedDecision } from "./decision-form.tsx";
import { grantOffer } from "../rules/grant-form.tsx";
import { requestTitle } from "../frame/action-row.tsx";
import { bodyPath, RequestParts, RevealForm, untrustedUrl } from "../../ui/request.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";

export interface HeldRequest {
  readonly action: MaskedAction;
  readonly history: DecisionHistory;
  /** Identifies the shown request: the decision applies to no other. */
  readonly digest: string;
}

/** Requests that look like the shown one. The decision applies to only one of them. */
export interface LookAlikes {
  /** The shown one's place among them, from 1. */
  readonly place: number;
  readonly count: number;
  /** The page that decides all of them together. */
  readonly path: string;
}

interface RequestPaneProps {
  readonly held: HeldRequest;
  readonly user: PageUser;
  readonly now: Date;
  readonly refused?: RefusedDecision | undefined;
  /** The page's own path. The form is sent there, and it shows a long body to the end. */
  readonly path: string;
  readonly isWhole: boolean;
  readonly alike?: LookAlikes | null;
}

export function RequestPane({ held, user, now, refused, path, isWhole, alike = null }: RequestPaneProps) {
  const action = asSent(held.action);
  const mayDecide = mayDo(user.role, "approve");
  const body = pageBody(action, isWhole ? limitsOnPage(action) : BEGINNING);
  return (
    <div id={`of-${action.id}`} class="request" data-shown={`${action.id} ${action.run}`}>
      <div class="request-body">
        <h2 class="visually-hidden">Request</h2>
        {alike === null ? null : (
          <p class="alike between quiet">
            {`${alike.place} of ${alike.count} look-alikes`}
            {mayDecide ? <a href={alike.path}>{`Review all ${alike.count}`}</a> : null}
          </p>
        )}
        <AskedRequest
          action={action}
          history={held.history}
          body={body}
          bodyPath={bodyPath(action.id)}
          user={user}
          now={now}
          end={<EndOfRequest />}
          canCopy
        />
        <p class="foot">
          {`${waitingText(action)} Secrets are masked as ••••; the request is sent with the real values.`}
        </p>
      </div>
      {mayDecide ? (
        <DecisionForm
          user={user}
          path={path}
          asked={[{ action, digest: held.digest, body }]}
          {...(alike !== null && { what: "this one" })}
          offer={grantOffer(held.action)}
          refused={refused}
        />
      ) : (
        <div class="request-body">
          <Problem text={refused?.problem} />
          <p class="quiet">Your role can’t decide: approvers and owners of the account can.</p>
        </div>
      )}
    </div>
  );
}

interface AskedRequestProps extends Omit<HeldRequest, "digest"> {
  readonly body: PageBody | null;
  readonly bodyPath: string;
  /** Null: whoever has the link of an approval. */
  readonly user: PageUser | null;
  /** The time that others are shown relative to; null to show none. */
  readonly now: Date | null;
  /** What comes below the part that people must see. */
  readonly end?: Child;
  readonly canCopy?: boolean;
}

/**
 * A held request, in the order of every place of decision: the call, its risks, what is sent, the requester's words. The rest
 * is folded. People who may not decide see no facts.
 */
export function AskedRequest(props: AskedRequestProps) {
  const { action, history, body, user, now, end = null } = props;
  const mayDecide = user === null || mayDo(user.role, "approve");
  const sent = (
    <RequestParts
      action={action}
      isAsked={mayDecide}
      isOpen
      body={body === null ? null : { ...body, kind: bodyKindText(action) }}
      bodyPath={props.bodyPath}
      canCopy={props.canCopy ?? false}
    />
  );
  if (!mayDecide) {
    return (
      <div class="asked">
        <p>{requestTitle(action)}</p>
        <HeldByRules of={[action]} user={user} />
        {sent}
        {end}
      </div>
    );
  }
  const hidden = <HiddenValues action={action} user={user} />;
  const { facts, risks } = maskedFacts(action, history, "");
  const notes = risks.filter(({ level }) => level === "note");
  // The number of hidden values comes above the first of them.
  const isInUrl = facts.some(({ name, value }) => name === "url" && value.includes(MASK));
  const isRuled = action.policy?.by === "rule";
  const isSaid = !isInUrl && facts.some(({ name }) => name === "hidden");
  return (
    <div class="asked" data-asked="">
      {isInUrl ? hidden : null}
      <FactList facts={facts.filter(({ name }) => CALL_FACTS.has(name))} look="asked-head" action={action} now={now} />
      <Risks risks={risks.filter(({ level }) => level !== "note")} />
      <HeldByRules of={[action]} user={user} />
      {isSaid || notes.length > 0 ? (
        <div class="chips asked-marks">
          {isSaid ? hidden : null}
          {notes.map(({ name, text }) => (
            <span class="tag" title={visibleText(text)}>
              {RISK_WORDS[name]}
            </span>
          ))}
        </div>
      ) : null}
      {sent}
      <FactList facts={facts.filter(({ name }) => WORD_FACTS.has(name))} look="asked-words" action={action} now={now} />
      {end}
      <details class="asked-more">
        <summary>
          Details{" "}
          <span class="small">
            {untrusted(describeActor(action.createdBy).name)}
            {now === null ? null : sentence` · ${ago(action.createdAt, now)}`}
          </span>
        </summary>
        <Risks risks={notes} />
        <FactList
          facts={facts.filter(({ name }) => !(SHOWN_ABOVE.has(name) || (name === "policy" && isRuled)))}
          look="asked-facts"
          action={action}
          now={now}
        />
      </details>
    </div>
  );
}

const CALL_FACTS: ReadonlySet<FactName> = new Set(["method", "url"]);

const WORD_FACTS: ReadonlySet<FactName> = new Set(REQUESTER_TEXTS);

/** Facts that the details leave out, because they are shown above. */
const SHOWN_ABOVE: ReadonlySet<FactName> = new Set([...CALL_FACTS, ...WORD_FACTS, "hidden", "body"]);

interface FactListProps {
  readonly facts: readonly Fact[];
  readonly look: "asked-head" | "asked-words" | "asked-facts";
  readonly action: SeenAction;
  readonly now: Date | null;
}

/** Facts with a line of their own: unusual ones, and the requester's words. */
const WIDE: ReadonlySet<string> = new Set([...REQUESTER_TEXTS, "url", "rejected", "asked_again", "extras"]);

export function FactList({ facts, look, action, now }: FactListProps) {
  if (facts.length === 0) return null;
  return (
    <dl class={look}>
      {facts.map((fact) => (
        <div
          class={`fact-${fact.name}${WIDE.has(fact.name) || (fact.name !== "action" && fact.value.length > 40) ? " fact-wide" : ""}`}
        >
          <dt>{fact.label}</dt>
          <dd>
            <FactValue fact={fact} action={action} />
            {fact.name === "requested_at" && now !== null ? (
              <span class="quiet">
                {" · "}
                {ago(action.createdAt, now)}
              </span>
            ) : null}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Shows a fact as untrusted text, unless it consists of our own words and numbers. */
function FactValue({ fact: { name, value }, action }: { readonly fact: Fact; readonly action: SeenAction }) {
  if (name === "title") return sentence`“${untrusted(value)}”`;
  if (name === "method") return <b>{value}</b>;
  const at = settingTime(name, action);
  if (at !== null) return timeInWords(at, value);
  if (TRUSTED_FACTS.has(name)) return <>{value}</>;
  if (name === "action") {
    return (
      <Copied text={action.id} what="the action's ID">
        <a href={value}>{action.id}</a>
      </Copied>
    );
  }
  const target = name === "url" || name === "callback" ? normalTarget(value) : null;
  const text = target === null ? untrustedLines(value) : untrustedUrl(value, target.host);
  return name === "url" ? <Copied what="the URL">{text}</Copied> : text;
}

function settingTime(name: string, action: SeenAction): Date | null {
  if (name === "requested_at") return action.createdAt;
  if (name === "run_at") return requestedRunAt(action);
  return name === "expires_at" ? action.expiresAt : null;
}

/** Facts that contain no untrusted text. */
const TRUSTED_FACTS: ReadonlySet<string> = new Set(["run", "rejections", "attempts", "on_unknown"]);

/** Each risk in a word or two. The request says it in a sentence. */
export const RISK_WORDS: Readonly<Record<(typeof RISKS)[number], string>> = {
  already_done: "done already",
  key_revoked: "key revoked",
  key_expired: "key expired",
  rejected: "rejected before",
  similar_rejected: "like rejected ones",
  credential: "credential changed",
  new_host: "new host",
  deletes: "deletes",
  other_method: "other method",
  hidden_characters: "hidden characters",
  mixed_scripts: "mixed letters",
  coded_letters: "coded letters",
  hidden_values: "hidden values",
  size: "large",
  callback_host: "other callback host",
};

export function Risks({ risks }: { readonly risks: readonly DecisionFactsJson["risks"][number][] }) {
  if (risks.length === 0) return null;
  return (
    <ul class="risks" aria-label="Warnings" data-asked="">
      {risks.map(({ level, text }) => (
        <li class={`risk-${level}`}>{untrusted(text)}</li>
      ))}
    </ul>
  );
}

/** Says how many values of a masked action are hidden and how to see them, or where to log in for that. */
function HiddenValues({ action, user }: { readonly action: MaskedAction; readonly user: PageUser | null }) {
  const text = hiddenValuesText(action.hiddenValues);
  if (text === null) return null;
  if (user !== null) {
    return (
      <div class="hidden-values">
        <span>{text}</span>
        <RevealForm user={user} id={action.id} look="link" />
      </div>
    );
  }
  return (
    <p class="hidden-values">
      <span>{text}</span>
      <a href={actionPath(action.id)}>Log in to see</a>
    </p>
  );
}

interface DecidedByProps {
  readonly policy: ActionPolicy;
  /** Null: whoever has the link of an approval. */
  readonly user: PageUser | null;
}

/** Names the rule or grant that decided, and why: “Payments above 1000”: A person checks them. Owners get a link to the rule. */
export function DecidedBy({ policy: { by, id, name, reason }, user }: DecidedByProps) {
  const text = untrusted(name ?? "");
  const isLink = by === "rule" && id !== null && user !== null && mayDo(user.role, "manage");
  return (
    <span class="held-by">
      “{isLink ? <a href={`${SETTINGS_PATHS.rules}/${id}`}>{text}</a> : text}”
      {reason === null ? null : sentence`: ${untrusted(reason)}`}
    </span>
  );
}

/** Names the rules that hold a request or its look-alikes. Holds of keys are in the details. */
export function HeldByRules(props: {
  readonly of: readonly Pick<SeenAction, "policy">[];
  readonly user: PageUser | null;
}) {
  const rules = Map.groupBy(
    props.of.flatMap(({ policy }) => (policy?.by === "rule" ? [policy] : [])),
    (policy) => JSON.stringify(policy),
  );
  return [...rules.values()].flatMap(([policy, ...others]) =>
    policy === undefined ? (
      []
    ) : (
      <p>
        {others.length + 1 < props.of.length ? `${others.length + 1} held by the rule ` : "Held by the rule "}
        <DecidedBy policy={policy} user={props.user} />
      </p>
    ),
  );
}
