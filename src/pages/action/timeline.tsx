/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { type OutcomeKind, statusSentence } from "../../core/outcome.ts";
import { type TimelineEntry, type TimelineEvent } from "../../core/timeline.ts";
import { Card, sentence, time, type Tone, untrustedLines, untrusted, actorName } from "../../ui/parts.tsx";
import { visibleText } from "../../receipts/visible-text.ts";
import { type ActorEvent, counted, duration, mailName } from "../../ui/text.ts";

/** Shows all entries, oldest first. They must be masked. */
export function History(props: { readonly timeline: readonly TimelineEntry[]; readonly children?: Child }) {
  const { timeline, children } = props;
  // Shows the start of an attempt only while it has no result.
  const steps = timeline.filter(({ event }, at) => event.type !== "started" || at === timeline.length - 1);
  return (
    <Card id="history" title="Timeline">
      {children}
      <ol class="steps">
        {steps.map(({ run, at, event }, index) => {
          const before = steps[index - 1];
          const { tone, title, details } = describeEvent(event, at);
          return (
            <>
              {run > (before?.run ?? 1) ? <li class="run">{`Run ${run}`}</li> : null}
              <li class={`step step-${tone}`}>
                <p class="between">
                  <span>{title}</span>
                  <span class="quiet small">{time(at, before?.at)}</span>
                </p>
                {details
                  .filter((detail) => detail !== null && detail !== "")
                  .map((detail) => (
                    <p class="small quiet">{detail}</p>
                  ))}
              </li>
            </>
          );
        })}
      </ol>
    </Card>
  );
}

interface EventText {
  readonly tone: Tone;
  readonly title: Child;
  /** Null and empty ones are left out. */
  readonly details: readonly Child[];
}

/** Describes an event, which must be masked. */
function describeEvent(event: TimelineEvent, at: Date): EventText {
  if ("actor" in event) return describeActorEvent(event);
  if ("attempt" in event) return describeAttempt(event, at);
  if ("delivered" in event) return describeNotification(event, at);
  if (event.type === "not_started") return { tone: "wait", title: "Not started", details: [event.reason] };
  const details = event.type === "held" && event.reason !== undefined ? [event.reason] : [];
  return { tone: EVENTS[event.type].tone, title: EVENTS[event.type].text, details };
}

type AttemptEvent = Extract<TimelineEvent, { readonly attempt: number }>;

type NotificationEvent = Extract<TimelineEvent, { readonly delivered: boolean }>;

const EVENTS: Readonly<
  Record<
    ActorEvent["type"] | "held" | "started" | "completed" | "failed",
    Pick<EventText, "tone"> & { readonly text: string }
  >
> = {
  created: { tone: "still", text: "Requested" },
  held: { tone: "wait", text: "Held for approval" },
  approved: { tone: "good", text: "Approved" },
  rejected: { tone: "bad", text: "Rejected" },
  started: { tone: "busy", text: "Being sent" },
  completed: { tone: "good", text: "Completed" },
  failed: { tone: "bad", text: "Failed" },
  cancelled: { tone: "still", text: "Cancelled" },
  retried: { tone: "busy", text: "Retried" },
  sent_now: { tone: "busy", text: "Brought forward" },
  paused: { tone: "wait", text: "Paused" },
  resumed: { tone: "busy", text: "Resumed" },
};

function describeActorEvent({ type, actor, reason = null, via }: ActorEvent): EventText {
  const { tone, text } = EVENTS[type];
  const title = sentence`${text} by ${actorName(actor)}`;
  const quote = reason === null ? null : <q class="reason">{untrustedLines(reason)}</q>;
  // Outgate can't verify that the client asked.
  const asked = via === "elicitation" ? "The client reports that it asked its user." : null;
  return { tone, title, details: [asked, quote] };
}

const OUTCOMES: Readonly<Record<OutcomeKind, string>> = {
  answered: "",
  not_sent: "Not sent: the target did not receive it.",
  unknown: "Outcome unknown: the target may have received it.",
};

/** What a late result did, after its attempt had been closed as unknown. */
const LATE: Readonly<Record<"settled" | "result" | "noted", string>> = {
  settled: "The result came after the attempt was closed as unknown, and counts all the same.",
  result: "The result came after the action had ended: its status stays.",
  noted: "The result came after the attempt was closed as unknown, and changes nothing.",
};

function describeAttempt(event: AttemptEvent, at: Date): EventText {
  const { attempt, outcome, response_code: code, error, duration_ms: ms, location, late } = event;
  const answer = code === null ? "no response" : `answered ${code}`;
  const isInTitle = code !== null && error === statusSentence(code);
  const redirect = location === null ? null : sentence`Location: ${untrusted(location)}`;
  return {
    tone: error === null ? "good" : "bad",
    title: `Attempt ${attempt}: ${answer}${ms === null ? "" : ` in ${duration(ms)}`}${late === undefined ? "" : ", late"}`,
    details: [
      isInTitle ? null : error,
      OUTCOMES[outcome],
      late === undefined ? null : LATE[late],
      redirect,
      nextAttempt(event.next_retry_at, at),
    ],
  };
}

function describeNotification(notification: NotificationEvent, at: Date): EventText {
  const { delivered, attempts, error, next_retry_at: next } = notification;
  const last = attempts === 0 ? "not sent" : `given up after ${counted(attempts, "attempt")}`;
  const end = next === null ? last : "not delivered yet";
  return {
    tone: delivered ? "still" : "wait",
    title: `${notificationName(notification)} ${delivered ? "delivered" : end}`,
    details: [error, nextAttempt(next, at)],
  };
}

function notificationName({ type, event, channel }: NotificationEvent): string {
  if (channel === undefined) return type === "mail" ? mailName(event) : `Callback ${event}`;
  const what = type === "mail" ? "Email" : "Message";
  return `${event === "reminded" ? `Reminder: ${what.toLowerCase()}` : what} to channel ${visibleText(channel)}`;
}

function nextAttempt(next: string | null, at: Date): Child {
  if (next === null) return null;
  return sentence`Next attempt: ${time(new Date(next), at)}`;
}
