/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { POLICY_SOURCE_WORDS } from "../core/action-policy.ts";
import { describeActor } from "../core/roles.ts";
import { nextRetryAt, runAtOf } from "../core/action.ts";
import { REQUESTER_LABELS, requesterTexts, unknownExtras } from "../core/extras.ts";
import { COPY_OF } from "../actions/edited-copy.ts";
import { normalTarget } from "../core/target.ts";
import { ACTION_ID } from "../core/ids.ts";
import { Copied, CopiedText } from "../ui/controls.tsx";
import { Decider } from "./decide.tsx";
import { backoffText, patternsText } from "./hosts.tsx";
import { actionPath, listPath } from "../ui/layout.tsx";
import { type FactRows, Facts, Name, sentence, Time, UntrustedText } from "../ui/parts.tsx";
import { duration, type PageUser } from "../ui/text.ts";
import { ActorName } from "./timeline.tsx";
import type { SeenAction } from "../receipts/seen-action.ts";

interface ActionDetailsProps {
  readonly action: SeenAction;
  readonly user: PageUser;
  readonly receiptUrl: string;
  readonly baseUrl: string;
}

/** Everything there is to know of an action beside its request and its attempts. */
export function ActionDetails({ action, user, receiptUrl, baseUrl }: ActionDetailsProps) {
  return (
    <section class="card details" aria-labelledby="details">
      <h2 id="details">Details</h2>
      <Facts rows={whoRows(action)} />
      <Facts rows={whenRows(action, user)} />
      <Facts rows={howRows(action, receiptUrl, baseUrl)} />
    </section>
  );
}

const untrusted = (text: string | null | undefined): Child =>
  text === null || text === undefined ? null : <UntrustedText text={text} />;

const at = (time: Date | null): Child => (time === null ? null : <Time at={time} />);

function whoRows({ id, createdBy, keyId, hostname, host, extras }: SeenAction): FactRows {
  const { name, way } = describeActor(createdBy);
  return [
    ["Action", <Copied text={id} what="the action's ID" />],
    [
      keyId === "" ? "Created by" : "Agent",
      <>
        {keyId === "" ? (
          <Name text={name} />
        ) : (
          <a href={listPath({ created_by: keyId })} title="All actions of this key">
            <Name text={name} />
          </a>
        )}{" "}
        <span class="quiet">{way}</span>
      </>,
    ],
    ["Key", keyId === "" ? null : <Copied text={keyId} what="the key's ID" />],
    [
      "Host",
      <a href={listPath({ host: hostname })}>
        <UntrustedText text={host} />
      </a>,
    ],
    ...requesterTexts({ title: null, extras }, extras.reason ?? null).map(
      ({ name: said, note, text }) =>
        [REQUESTER_LABELS[said], note === "" ? untrusted(text) : <Metadata name={note} value={text ?? ""} />] as const,
    ),
    ...Object.entries(unknownExtras(extras) ?? {}).map(
      ([member, value]) =>
        ["Only for another version", <Metadata name={member} value={JSON.stringify(value)} />] as const,
    ),
  ];
}

/** The id of the action that this one copies leads to it. Anybody may write it, so it stands among the requester's words. */
function Metadata({ name, value }: { readonly name: string; readonly value: string }) {
  const text = <UntrustedText text={`${name}: ${value}`} />;
  return name === COPY_OF && ACTION_ID.test(value) ? <a href={actionPath(value)}>{text}</a> : text;
}

function whenRows(action: SeenAction, user: PageUser): FactRows {
  const { run, createdAt, approve, approvedBy, approvedAt, startedAt, finishedAt, expiresAt } = action;
  return [
    ["Created", <Time at={createdAt} />],
    ["Approval", approve ? null : "Not required"],
    policyRow(action, user),
    ["Approved by", approvedBy === null ? null : <ActorName actor={approvedBy} />],
    ["Approved at", at(approvedAt)],
    ["Not before", at(runAtOf(action))],
    [run === 1 ? "First attempt" : `First attempt of run ${run}`, at(startedAt)],
    ["Next attempt", at(nextRetryAt(action))],
    ["Ended", at(finishedAt)],
    ["Expires", at(expiresAt)],
  ];
}

/** What waits says so above the decision, and what a grant let pass beside its status. */
function policyRow({ policy, status }: SeenAction, user: PageUser): FactRows[number] {
  if (policy === null || policy.by === "grant" || status === "awaiting_approval") return ["Held by", null];
  const { effect, by } = policy;
  const name = effect === "allow" ? "Allowed by" : "Held by";
  if (policy.name === null) return [name, POLICY_SOURCE_WORDS[by]];
  return [`${name} the ${by}`, <Decider policy={policy} user={user} />];
}

function howRows(action: SeenAction, receipt: string, baseUrl: string): FactRows {
  const { run, attempts, retries, extras, onUnknown, dedupe, idempotencyKey, callback, notifyEmail } = action;
  const signedFor = normalTarget(action.url)?.origin ?? null;
  return [
    ["Run", run === 1 ? null : String(run)],
    ["Attempts", `${attempts} of ${retries}`],
    ["Timeout", extras.timeoutMs === undefined ? null : `${duration(extras.timeoutMs)} for an attempt`],
    ["Delay between attempts", backoffText(extras.backoff)],
    ["Gives up on", extras.giveUpOn === undefined ? null : patternsText(extras.giveUpOn)],
    ["After an unknown outcome", onUnknown === "stop" ? "Stop" : null],
    ["Dedupe key", dedupe === null ? null : <CopiedText what="the dedupe key">{untrusted(dedupe)}</CopiedText>],
    [
      "Key of the create",
      idempotencyKey === null ? null : (
        <CopiedText what="the key of the create">{untrusted(idempotencyKey)}</CopiedText>
      ),
    ],
    ["Idempotency-Key", <CopiedText what="the Idempotency-Key">{untrusted(sentKeyOf(action))}</CopiedText>],
    ["Callback", untrusted(callback)],
    ["Approval email", untrusted(notifyEmail)],
    [
      "Signature",
      signedFor === null ? null : sentence`Standard Webhooks, ${<code>webhook-id</code>} is the action’s ID`,
    ],
    [
      "Receipt",
      <Copied text={new URL(receipt, baseUrl).href} what="the link of the receipt">
        <a href={receipt}>Open the receipt</a>
      </Copied>,
    ],
  ];
}

/** The `Idempotency-Key` that the target sees, in all attempts. */
function sentKeyOf({ id, headers }: SeenAction): string {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1] ?? id;
}
