import Type, { type Static } from "typebox";
import type { TimelineEventType, TimelineEntry } from "../domain/timeline.ts";
import { Status } from "./action.ts";
import { dateTime, nullable, plainText } from "./kinds.ts";

const TYPES = [
  "created",
  "held",
  "started",
  "not_started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "completed",
  "failed",
  "mail",
  "callback",
  "paused",
  "resumed",
] as const satisfies readonly TimelineEventType[];

const count = (minimum: number, description: string, example: number) =>
  Type.Integer({ minimum, description, examples: [example] });

/** One thing that happened to an action (decisions 12). Which members it has depends on its type. */
export const TimelineItem = Type.Object(
  {
    seq: count(0, "Grows; not without gaps. A line of a pause has the number of the line before it.", 7),
    at: dateTime("When it happened."),
    run: count(1, "A manual retry begins the next run.", 1),
    type: Type.Enum([...TYPES], { type: "string", description: "What happened.", examples: ["attempt"] }),
    status: Status,
    actor: Type.Optional(plainText("Who decided.", "key:ann")),
    reason: Type.Optional(nullable(plainText("Why, as far as it was said.", "Agreed with Ann."))),
    via: Type.Optional(
      Type.Literal("elicitation", {
        description: "The actor's MCP client says that it has put the decision to its person.",
        examples: ["elicitation"],
      }),
    ),
    attempt: Type.Optional(count(1, "Which attempt of the run it was.", 1)),
    outcome: Type.Optional(
      Type.Enum(["answered", "not_sent", "unknown"], {
        type: "string",
        description:
          "answered: a status came back; not_sent: the target saw nothing; unknown: it may have received it.",
        examples: ["answered"],
      }),
    ),
    response_code: Type.Optional(
      nullable(Type.Integer({ description: "HTTP status of the target.", examples: [503] })),
    ),
    error: Type.Optional(nullable(plainText("How it failed.", "The target answered with status 503."))),
    duration_ms: Type.Optional(nullable(count(0, "How long the attempt took.", 41))),
    next_retry_at: Type.Optional(nullable(dateTime("The attempt after this one."))),
    location: Type.Optional(
      nullable(plainText("Where a redirect, never followed, points.", "https://api.example.com/moved")),
    ),
    event: Type.Optional(plainText("What the mail or callback was about.", "action.completed")),
    delivered: Type.Optional(Type.Boolean({ description: "Whether it arrived.", examples: [true] })),
    attempts: Type.Optional(count(0, "How often it was tried.", 1)),
  },
  { title: "TimelineItem", description: "One thing that happened to an action." },
);

export const Timeline = Type.Object(
  { data: Type.Array(TimelineItem, { description: "What happened, oldest first." }) },
  { title: "Timeline", description: "Everything that happened to an action." },
);
export type Timeline = Static<typeof Timeline>;

/** A timeline as JSON text. */
export function timelineJson(entries: readonly TimelineEntry[]): string {
  return JSON.stringify({ data: entries.map(itemOf) });
}

/** One row as JSON says it. */
export function itemOf({ seq, at, run, status, event }: TimelineEntry) {
  const { type, ...told } = event;
  return { seq, at: at.toISOString(), run, type, status, ...told };
}
