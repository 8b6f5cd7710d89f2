/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import {
  DEDUPE_WINDOW_MS,
  NOTIFY_DELAYS_MS,
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
} from "../domain/limits.ts";
import { Facts } from "./parts.tsx";
import { counted, duration } from "./words.ts";

/** What is in force on this server, as far as it may be told to whoever looks. */
export interface Rules {
  /** A sentence: where calls may go. */
  readonly targets: string;
  /** 0: any number. */
  readonly rateLimitPerSecond: number;
  readonly attemptTimeoutMs: number;
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** null: an approval is awaited for ever. */
  readonly approvalTtlHours: number | null;
  readonly approvalLinks: "confirm" | "one_click";
  /** Addresses and domains, or how many there are for whom they are not; empty: anyone. */
  readonly approvers: readonly string[];
  readonly agentApproval: "elicit" | "off";
  readonly sendsMail: boolean;
  /** null: finished actions are kept. */
  readonly retentionDays: number | null;
}

/** The settings of the server in words, each with its name. */
export function RulesView({ rules }: { readonly rules: Rules }) {
  return (
    <>
      <Section id="targets" title="Where calls may go" rows={targetRows(rules)} />
      <Section id="delivery" title="Delivery and limits" rows={deliveryRows(rules)} />
      <Section id="approvals" title="Approvals" rows={approvalRows(rules)} />
      <Section id="retention" title="Retention" rows={retentionRows(rules)} />
      <p class="foot">Whoever runs this server changes these by its settings, and starts it again.</p>
    </>
  );
}

type Rows = readonly (readonly [name: string, value: Child])[];

function Section({ id, title, rows }: { readonly id: string; readonly title: string; readonly rows: Rows }) {
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <Facts rows={rows} />
    </section>
  );
}

/** A value in words, and the setting that it comes from. */
function Said({ words, by }: { readonly words: string; readonly by: string }) {
  return (
    <>
      {words} <code class="setting">{by}</code>
    </>
  );
}

function targetRows({ targets }: Rules): Rows {
  return [
    ["Allowed", <Said words={targets} by="ALLOWED_PRIVATE_TARGETS" />],
    ["Never", "Cloud metadata, link-local and multicast addresses, whatever the settings say."],
    ["Checked", "Every address that a name stands for, at every attempt; the call goes to a checked one."],
  ];
}

function deliveryRows(rules: Rules): Rows {
  const { rateLimitPerSecond, attemptTimeoutMs, retryBaseMs, retryCapMs } = rules;
  const rate = rateLimitPerSecond === 0 ? "Not limited." : `${counted(rateLimitPerSecond, "request")} a second.`;
  const wait = `${duration(retryBaseMs)} after the first failure, twice as long after each further one, ${duration(retryCapMs)} at most.`;
  const callbacks = NOTIFY_DELAYS_MS.map(duration).join(", ");
  return [
    ["Rate of the account", <Said words={rate} by="RATE_LIMIT_PER_SECOND" />],
    ["An attempt takes", <Said words={`${duration(attemptTimeoutMs)} at most.`} by="ATTEMPT_TIMEOUT_MS" />],
    ["Retries wait", <Said words={wait} by="RETRY_BASE_MS, RETRY_CAP_MS" />],
    ["Attempts of a run", `${RETRIES_DEFAULT}, unless the create says another number, up to ${RETRIES_MAX}.`],
    ["Callbacks are tried", `At once, and after failures ${callbacks} later; then they are given up.`],
    [
      "A request body has",
      `${kib(REQUEST_BODY_BYTES_MAX)} at most; of an answer ${kib(RESPONSE_BODY_BYTES_MAX)} are kept.`,
    ],
    ["Keys of deduplication", `Are remembered for ${duration(DEDUPE_WINDOW_MS)}.`],
  ];
}

function approvalRows(rules: Rules): Rows {
  const { approvalTtlHours, approvalLinks, approvers, agentApproval, sendsMail } = rules;
  const expire = approvalTtlHours === null ? "Never." : `After ${counted(approvalTtlHours, "hour")}: cancelled.`;
  const link = approvalLinks === "confirm" ? "It asks first." : "It decides when it is opened.";
  const agents =
    agentApproval === "elicit" ? "Its client may put the question to its person, but for what a key holds." : "Never.";
  return [
    ["Approvals expire", <Said words={expire} by="APPROVAL_TTL_HOURS" />],
    ["Mails", <Said words={sendsMail ? "Are sent." : "Are not sent: no provider is set."} by="MAILGUN_API_KEY" />],
    ["A link in a mail", <Said words={link} by="APPROVAL_LINKS" />],
    ["Who may be asked", <Said words={askedWords(approvers)} by="APPROVERS" />],
    ["An agent approves", <Said words={agents} by="AGENT_APPROVAL" />],
  ];
}

function askedWords(approvers: readonly string[]): string {
  if (approvers.length > 0) return `People of the account, and ${approvers.join(", ")}`;
  return "People of the account; by an owner key without a hold anyone.";
}

function retentionRows({ retentionDays }: Rules): Rows {
  const kept = retentionDays === null ? "For ever." : `For ${counted(retentionDays, "day")} after their end.`;
  return [["Finished actions are kept", <Said words={kept} by="RETENTION_DAYS" />]];
}

function kib(bytes: number): string {
  return bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;
}
