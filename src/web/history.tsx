/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { OutcomeKind } from "../domain/outcome.ts";
import type { Happening, TimelineEntry } from "../domain/timeline.ts";
import type { Decided } from "./decided.ts";
import { Foreign } from "./foreign.tsx";
import { Time, type Tone } from "./parts.tsx";
import { actorWords, counted, duration } from "./words.ts";

/** Everything that happened, oldest first. The entries are masked by now. */
export function History({ timeline }: { readonly timeline: readonly TimelineEntry[] }) {
  const told = timeline.filter((entry, at) => isTold(entry, timeline[at + 1]));
  return (
    <section class="card" aria-labelledby="history">
      <h2 id="history">History</h2>
      <ol class="steps">
        {told.map(({ at, run, happening }, index) => (
          <>
            {run > (told[index - 1]?.run ?? 1) ? <li class="run">{`Run ${run}`}</li> : null}
            <Step at={at} before={told[index - 1]?.at} happening={happening} />
          </>
        ))}
      </ol>
    </section>
  );
}

/** The beginning of an attempt is told by its end, unless that has not come. */
function isTold({ happening }: TimelineEntry, next: TimelineEntry | undefined): boolean {
  return happening.type !== "started" || next === undefined;
}

interface StepProps {
  readonly at: Date;
  /** When the step before it was. */
  readonly before: Date | undefined;
  readonly happening: Happening;
}

function Step({ at, before, happening }: StepProps) {
  const { tone, title, details } = wordsOf(happening, at);
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

interface Words {
  readonly tone: Tone;
  readonly title: Child;
  readonly details: readonly Child[];
}

function wordsOf(happening: Happening, at: Date): Words {
  if ("actor" in happening) return decisionWords(happening);
  if ("attempt" in happening) return attemptWords(happening, at);
  if ("delivered" in happening) return notificationWords(happening);
  return { ...CHANGES[happening.type], details: [] };
}

type Attempted = Extract<Happening, { readonly attempt: number }>;
type Notified = Extract<Happening, { readonly delivered: boolean }>;

type Changed = Exclude<Happening, Decided | Attempted | Notified>;

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
  retried: { tone: "busy", verb: "Begun again" },
};

function decisionWords({ type, actor, reason = null }: Decided): Words {
  const { tone, verb } = DECISIONS[type];
  const details = reason === null ? [] : [<Quote text={reason} />];
  return { tone, title: <By verb={verb} actor={actor} />, details };
}

/** What was done, by whom, and how they came in. */
export function By({ verb, actor }: { readonly verb: string; readonly actor: string }) {
  return (
    <>
      {verb} by <Who actor={actor} />
    </>
  );
}

/** Somebody who did something, and how they came in. */
export function Who({ actor }: { readonly actor: string }) {
  const { name, way } = actorWords(actor);
  return (
    <>
      <Name text={name} /> <span class="quiet">{way}</span>
    </>
  );
}

/** A name that somebody chose, in the letters of the page. */
function Name({ text }: { readonly text: string }) {
  return (
    <b class="name">
      <Foreign text={text} />
    </b>
  );
}

function Quote({ text }: { readonly text: string }) {
  return (
    <q class="reason">
      <Foreign text={text} />
    </q>
  );
}

const OUTCOMES: Readonly<Record<OutcomeKind, string>> = {
  answered: "",
  not_sent: "Not sent: the target saw nothing of it.",
  unknown: "Outcome unknown: the target may have received it.",
};

function attemptWords(happening: Attempted, at: Date): Words {
  const { attempt, outcome, response_code: code, error, duration_ms: ms } = happening;
  const answer = code === null ? "no answer" : `answered ${code}`;
  const next = happening.next_retry_at;
  return {
    tone: error === null ? "good" : "bad",
    title: `Attempt ${attempt}: ${answer}${ms === null ? "" : ` in ${duration(ms)}`}`,
    details: [
      error ?? "",
      OUTCOMES[outcome],
      happening.location === null ? (
        ""
      ) : (
        <>
          Location: <Foreign text={happening.location} />
        </>
      ),
      next === null ? (
        ""
      ) : (
        <>
          Next attempt: <Time at={new Date(next)} near={at} />
        </>
      ),
    ].filter((detail) => detail !== ""),
  };
}

function notificationWords({ type, event, delivered, attempts, error }: Notified): Words {
  const what = type === "mail" ? "Approval mail" : `Callback ${event}`;
  const tries = attempts > 1 ? ` after ${counted(attempts, "attempt")}` : "";
  return {
    tone: delivered ? "still" : "wait",
    title: delivered ? `${what} delivered${tries}` : `${what} not delivered${tries}`,
    details: error === null ? [] : [error],
  };
}
