/** @jsxImportSource hono/jsx */
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import { Time, type Tone } from "./parts.tsx";
import type { Child } from "hono/jsx";
import { actorWords } from "../accounts/roles.ts";
import { type OutcomeKind, statusSentence } from "../actions/outcome.ts";
import { type Decided, counted, duration, mailName } from "./words.ts";
import { UntrustedText } from "./code.tsx";

/** All entries, oldest first. They must be masked already. */
export function History({ timeline }: { readonly timeline: readonly TimelineEntry[] }) {
  const shownEntries = timeline.filter((entry, at) => isShown(entry, timeline[at + 1]));
  return (
    <section class="card" aria-labelledby="history">
      <h2 id="history">History</h2>
      <ol class="steps">
        {shownEntries.map(({ at, run, event }, index) => (
          <>
            {run > (shownEntries[index - 1]?.run ?? 1) ? <li class="run">{`Run ${run}`}</li> : null}
            <Step at={at} before={shownEntries[index - 1]?.at} event={event} />
          </>
        ))}
      </ol>
    </section>
  );
}

/** The start of an attempt is shown only while the attempt has no result. */
function isShown({ event }: TimelineEntry, next: TimelineEntry | undefined): boolean {
  return event.type !== "started" || next === undefined;
}

interface StepProps {
  readonly at: Date;
  /** The time of the previous step. */
  readonly before: Date | undefined;
  readonly event: TimelineEvent;
}

function Step({ at, before, event }: StepProps) {
  const { tone, title, details } = wordsOf(event, at);
  return (
    <li class={`step step-${tone}`}>
      <p class="step-head">
        <span>{title}</span>
        <span class="quiet small">
          <Time at={at} near={before} />
        </span>
      </p>
      {details.map((detail) => (
        <p class="small quiet">{detail}</p>
      ))}
    </li>
  );
}

/** An event as text. */
export interface Words {
  readonly tone: Tone;
  readonly title: Child;
  readonly details: readonly Child[];
}

/** An event as text. It must be masked already. */
export function wordsOf(event: TimelineEvent, at: Date): Words {
  if ("actor" in event) return decisionWords(event);
  if ("attempt" in event) return attemptWords(event, at);
  if ("delivered" in event) return notificationWords(event, at);
  if (event.type === "not_started") return { tone: "wait", title: "Not started", details: [event.reason] };
  return { ...CHANGES[event.type], details: [] };
}

type Attempted = Extract<TimelineEvent, { readonly attempt: number }>;

type Notified = Extract<TimelineEvent, { readonly delivered: boolean }>;

type Changed = Exclude<TimelineEvent, Decided | Attempted | Notified | { readonly type: "not_started" }>;

const CHANGES: Readonly<Record<Changed["type"], Pick<Words, "tone" | "title">>> = {
  held: { tone: "wait", title: "Held for approval" },
  started: { tone: "busy", title: "Being sent" },
  completed: { tone: "good", title: "Completed" },
  failed: { tone: "bad", title: "Failed" },
};

const DECISIONS: Readonly<Record<Decided["type"], { readonly tone: Tone; readonly verb: string }>> = {
  created: { tone: "still", verb: "Requested" },
  approved: { tone: "good", verb: "Approved" },
  rejected: { tone: "bad", verb: "Rejected" },
  cancelled: { tone: "still", verb: "Cancelled" },
  retried: { tone: "busy", verb: "Retried" },
  paused: { tone: "wait", verb: "Paused" },
  resumed: { tone: "busy", verb: "Resumed" },
};

function decisionWords({ type, actor, reason = null, via }: Decided): Words {
  const { tone, verb } = DECISIONS[type];
  // Only the client says that it asked; Outgate can't verify it.
  const asked = via === "elicitation" ? ["The client reports that it asked its user."] : [];
  const details: readonly Child[] = [...asked, ...(reason === null ? [] : [<Quote text={reason} />])];
  return { tone, title: <By verb={verb} actor={actor} />, details };
}

export function By({ verb, actor }: { readonly verb: string; readonly actor: string }) {
  return (
    <>
      {verb} by <Who actor={actor} />
    </>
  );
}

/** An actor, and the way they used. */
export function Who({ actor }: { readonly actor: string }) {
  const { name, way } = actorWords(actor);
  return (
    <>
      <Name text={name} /> <span class="quiet">{way}</span>
    </>
  );
}

/** An untrusted name, in the font of the page. */
function Name({ text }: { readonly text: string }) {
  return (
    <b class="name">
      <UntrustedText text={text} />
    </b>
  );
}

function Quote({ text }: { readonly text: string }) {
  return (
    <q class="reason">
      <UntrustedText text={text} />
    </q>
  );
}

const OUTCOMES: Readonly<Record<OutcomeKind, string>> = {
  answered: "",
  not_sent: "Not sent: the target did not receive it.",
  unknown: "Outcome unknown: the target may have received it.",
};

function attemptWords(event: Attempted, at: Date): Words {
  const { attempt, outcome, response_code: code, error, duration_ms: ms } = event;
  const answer = code === null ? "no response" : `answered ${code}`;
  const isInTitle = code !== null && error === statusSentence(code);
  return {
    tone: error === null ? "good" : "bad",
    title: `Attempt ${attempt}: ${answer}${ms === null ? "" : ` in ${duration(ms)}`}`,
    details: [
      isInTitle ? "" : (error ?? ""),
      OUTCOMES[outcome],
      event.location === null ? (
        ""
      ) : (
        <>
          Location: <UntrustedText text={event.location} />
        </>
      ),
      nextOf(event.next_retry_at, at),
    ].filter((detail) => detail !== ""),
  };
}

function notificationWords(notified: Notified, at: Date): Words {
  const { type, event, delivered, attempts, error, next_retry_at: next } = notified;
  const what = type === "mail" ? mailName(event) : `Callback ${event}`;
  const last = attempts === 0 ? "not sent" : `given up after ${counted(attempts, "attempt")}`;
  const end = next === null ? last : "not delivered yet";
  return {
    tone: delivered ? "still" : "wait",
    title: `${what} ${delivered ? "delivered" : end}`,
    details: [error ?? "", nextOf(next, at)].filter((detail) => detail !== ""),
  };
}

function nextOf(next: string | null, at: Date): Child {
  if (next === null) return "";
  return (
    <>
      Next attempt: <Time at={new Date(next)} near={at} />
    </>
  );
}
