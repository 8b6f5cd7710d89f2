/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { actorWords } from "../domain/actor.ts";
import { type OutcomeKind, statusSentence } from "../domain/outcome.ts";
import type { TimelineEvent } from "../domain/timeline.ts";
import type { Decided } from "./decided.ts";
import { UntrustedText } from "./foreign.tsx";
import { Time, type Tone } from "./parts.tsx";
import { counted, duration, mailName } from "./words.ts";

/** What is told of something that happened. */
export interface Words {
  readonly tone: Tone;
  readonly title: Child;
  readonly details: readonly Child[];
}

/** Something that happened, in the words of the page; masked by now. */
export function wordsOf(event: TimelineEvent, at: Date): Words {
  if ("actor" in event) return decisionWords(event);
  if ("attempt" in event) return attemptWords(event, at);
  if ("delivered" in event) return notificationWords(event, at);
  if (event.type === "not_started") return { tone: "wait", title: "Not begun", details: [event.reason] };
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
  retried: { tone: "busy", verb: "Begun again" },
  paused: { tone: "wait", verb: "Paused" },
  resumed: { tone: "busy", verb: "Resumed" },
};

function decisionWords({ type, actor, reason = null, via }: Decided): Words {
  const { tone, verb } = DECISIONS[type];
  // Nobody saw the person: what the client says is all there is (hostile 8).
  const asked = via === "elicitation" ? ["Its client says that it put the question to its person."] : [];
  const details: readonly Child[] = [...asked, ...(reason === null ? [] : [<Quote text={reason} />])];
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
  not_sent: "Not sent: the target saw nothing of it.",
  unknown: "Outcome unknown: the target may have received it.",
};

function attemptWords(event: Attempted, at: Date): Words {
  const { attempt, outcome, response_code: code, error, duration_ms: ms } = event;
  const answer = code === null ? "no answer" : `answered ${code}`;
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
