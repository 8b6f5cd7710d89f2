import { utcFormat } from "../core/clock.ts";
import Type, { type Static } from "typebox";
import { requestedRunAt, REQUESTER_LABELS, REQUESTER_TEXTS, requesterTexts, unknownExtras } from "../core/action.ts";
import { type ActionPolicy, policySource } from "../core/action-policy.ts";
import { type Actor, describeActor, type Viewer } from "../core/roles.ts";
import { describeCredential, type RequestedCredential } from "../core/credential.ts";
import { plainText, run as runSchema, choice } from "../api/schema-helpers.ts";
import { EARLIER_REJECTIONS_SHOWN_MAX, UNKNOWN_EXTRAS_CHARS_SHOWN } from "../core/limits.ts";
import { asSent, hiddenValuesText, maskedActor, maskedEarlier } from "../receipts/masked-action.ts";
import { type MaskedAction, storedAction } from "../receipts/seen-action.ts";
import { bodyKindText } from "../receipts/mask-body.ts";
import { maskText } from "../receipts/masking.ts";
import type { EarlierRejection, RequestHistory } from "../core/rejections.ts";
import { type CredentialState, type KeyEnd, RISK_LEVELS, RISKS, findRisks } from "./risks.ts";
import type { Extras } from "../core/extras-schema.ts";

/**
 * The facts that an approver sees of a request, in this order, in mail, pages, MCP and CLI: what is sent, what the requester
 * says about it, and the rest. A fact that says nothing, such as the first run, is left out.
 */
export const FACTS = [
  "hidden",
  "method",
  "url",
  "body",
  ...REQUESTER_TEXTS,
  "credential",
  "requester",
  "requested_at",
  "policy",
  "run",
  "rejections",
  "rejected",
  "asked_again",
  "callback",
  "attempts",
  "on_unknown",
  "run_at",
  "expires_at",
  "extras",
  "action",
] as const;

export type FactName = (typeof FACTS)[number];

/** The facts that are URLs, shown as they are. Other texts are shown without anything that a client could make a link of. */
export const ADDRESS_FACTS: ReadonlySet<FactName> = new Set(["url", "callback", "action"]);

const Fact = Type.Object(
  {
    name: choice(FACTS, "Which fact it is.", "url"),
    label: plainText("Its label for people.", "URL"),
    value: plainText("Its value, masked. Treat it as untrusted plain text.", "https://api.example.com/orders"),
  },
  { title: "DecisionFact", description: "One fact that an approver sees." },
);

const Risk = Type.Object(
  {
    name: choice(RISKS, "Which risk it is.", "deletes"),
    level: choice(
      RISK_LEVELS,
      "danger: something is wrong, and comes first; warning: something is unusual; note: worth knowing.",
      "warning",
    ),
    text: plainText("The risk in a sentence.", "It deletes: the method is DELETE."),
  },
  { title: "DecisionRisk", description: "A reason to check the request carefully." },
);

export type Fact = Static<typeof Fact>;

export const DecisionFactsJson = Type.Object(
  {
    facts: Type.Array(Fact, { description: "In the order in which they are shown." }),
    risks: Type.Array(Risk, { description: "Empty: nothing about it is unusual." }),
    run: Type.Optional(runSchema("The run that awaits the decision.")),
    digest: Type.Optional(
      plainText(
        "Identifies the request for POST /v1/approvals. Only for keys that may approve.",
        "9f86d081884c7d659a2feaa0c55ad015",
      ),
    ),
  },
  {
    title: "DecisionFacts",
    description: "What an approver sees of an action in mail, pages, the MCP question and the command line.",
  },
);

export type DecisionFactsJson = Static<typeof DecisionFactsJson>;

/** A value of null leaves the fact out. */
type FactRow = readonly [name: FactName, label: string, value: string | null];

/** What the store knows about a request besides the action itself. */
export interface DecisionHistory extends RequestHistory {
  readonly credentialState: CredentialState | null;
  /** No approved call of its key to its host has completed so far. */
  readonly isNewHost: boolean;
  /** Null: the key of the request is live, or it has none. */
  readonly keyEnd: KeyEnd | null;
  /** Rejections of similar requests of its key within 24 h. */
  readonly similarRejections: number;
}

/** For actions that no longer await a decision. */
export const NO_HISTORY: DecisionHistory = {
  credentialState: null,
  isNewHost: false,
  reason: null,
  rejections: [],
  keyEnd: null,
  similarRejections: 0,
};

/**
 * The masked facts and risks of an action for an approver, the same wherever it can be decided. Risks are computed from the
 * unmasked values. `baseUrl` begins the link to the action's page; if it is empty, the link is a path.
 */
export function maskedFacts(action: MaskedAction, history: DecisionHistory, baseUrl: string): DecisionFactsJson {
  const { viewer, hiddenValues, hiddenInHeaders = 0, extras } = action;
  const { url } = asSent(action);
  const reason = history.reason === null ? null : maskText(history.reason, viewer);
  const runAt = requestedRunAt(action);
  const rejections = maskedEarlier(history.rejections, viewer);
  const { credential } = extras;
  const rows: readonly FactRow[] = [
    ["hidden", "Hidden", hiddenValuesText(hiddenValues)],
    // The call first: a title that ends like a host must not seem to be the beginning of a URL.
    ["method", "Method", action.method],
    ["url", "URL", url],
    ["body", "Body", bodyKindText(action)],
    // One fact for each text, so that no value can look like a line of ours.
    ...requesterTexts(action, reason).map(({ name, note, text }): FactRow => {
      return [name, REQUESTER_LABELS[name], text === null || note === "" ? text : `${note}: ${text}`];
    }),
    ["credential", "Credential", credential === undefined ? null : credentialText(credential)],
    ["requester", "Requested by", actorText(action.createdBy)],
    ["requested_at", "Requested at", utcMinute(action.createdAt)],
    ["policy", "Held by", action.policy && policyText(action.policy)],
    ["run", "Run", action.run === 1 ? null : String(action.run)],
    ...rejectionFacts(rejections),
    ["callback", "Callback", action.callback],
    ["attempts", "Attempts", action.retries === 1 ? "1" : `Up to ${action.retries}, until one succeeds`],
    ["on_unknown", "If the outcome is unknown", action.onUnknown === "stop" ? STOPS : null],
    ["run_at", "Not sent before", runAt && utcMinute(runAt)],
    ["expires_at", "Expires at", action.expiresAt && utcMinute(action.expiresAt)],
    ["extras", "Only for another version", unknownExtrasText(extras)],
    ["action", "Action", `${baseUrl}/actions/${action.id}`],
  ];
  const facts = rows.flatMap(([name, label, value]) => (value === null ? [] : [{ name, label, value }]));
  const keyEnd = maskedEnd(history.keyEnd, viewer);
  const hiddenOutsideHeaders = hiddenValues - hiddenInHeaders;
  return {
    facts,
    risks: findRisks({ ...storedAction(action), ...history, rejections, keyEnd, seenUrl: url, hiddenOutsideHeaders }),
  };
}

/** What is unusual about a request that nobody has to decide on. */
export function risksOfRequest(action: MaskedAction, { isReasonRead }: { readonly isReasonRead: boolean }) {
  const stored = storedAction(action);
  const reason = isReasonRead ? (stored.extras.reason ?? null) : null;
  return findRisks({ ...stored, ...NO_HISTORY, reason, seenUrl: asSent(action).url });
}

function maskedEnd(end: KeyEnd | null, viewer: Viewer): KeyEnd | null {
  return end === null || end.by === null ? end : { ...end, by: maskedActor(end.by, viewer) };
}

/** "stripe-live (Bearer, ••••4242), for api.stripe.com". */
export function credentialText(credential: RequestedCredential): string {
  const { hosts, paths = [], methods = [] } = credential;
  const bounds = [hosts, paths, methods].filter((list) => list.length > 0).map((list) => list.join(", "));
  return `${describeCredential(credential)}, for ${bounds.join("; ")}`;
}

/** Why it was held: 'The rule "Payments": a person checks them.' */
function policyText(policy: ActionPolicy): string {
  const { name, reason } = policy;
  const { label } = policySource(policy);
  const source = name === null ? label : `${label} "${name}"`;
  return reason === null ? source : `${source}: ${reason}`;
}

const STOPS = "Ends as failed: it is never sent again by itself";

/** "Ann, over the API": the name of an actor and how they connected. */
export function actorText(actor: Actor): string {
  const { name, way } = describeActor(actor);
  return `${name}, ${way}`;
}

/** Extras that this version doesn't know, so that whoever decides sees them all the same. */
function unknownExtrasText(extras: Extras): string | null {
  const unknown = unknownExtras(extras);
  if (unknown === null) return null;
  const text = JSON.stringify(unknown);
  const more = text.length > UNKNOWN_EXTRAS_CHARS_SHOWN ? `… (${text.length} characters)` : "";
  return text.slice(0, UNKNOWN_EXTRAS_CHARS_SHOWN).toWellFormed() + more;
}

/**
 * The count, then one fact for each, so that an untrusted reason can't look like a line of ours. A count of 0 is left out:
 * rejections before an approval, or older than a day, don't count.
 */
function rejectionFacts(entries: readonly EarlierRejection[]): readonly FactRow[] {
  const count = entries.filter(({ kind }) => kind === "rejected").length;
  const some = entries.length < EARLIER_REJECTIONS_SHOWN_MAX ? String(count) : `At least ${count}`;
  return [
    ["rejections", "Earlier rejections", count === 0 ? null : some],
    ...entries.map(({ kind, at, by, reason }): FactRow => {
      const said = `${actorText(by)}, ${utcMinute(at)}${reason === null ? "" : `: ${reason}`}`;
      return kind === "rejected" ? ["rejected", "Rejected", said] : ["asked_again", "Asked again", said];
    }),
  ];
}

const toTheMinute = utcFormat({
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

/** A time to the minute, in UTC, since the reader's time zone is unknown. */
export function utcMinute(at: Date): string {
  return `${toTheMinute(at)} UTC`;
}
