import Type from "typebox";
import type { HappeningType, TimelineEntry } from "../domain/timeline.ts";
import { Status } from "./action.ts";
import { dateTime, nullable } from "./kinds.ts";

const TYPES = [
  "created",
  "held",
  "started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "completed",
  "failed",
  "mail",
  "callback",
] as const satisfies readonly HappeningType[];

/** One thing that happened to an action (decisions 12). Which members it has depends on its type. */
export const TimelineItem = Type.Object({
  seq: Type.Integer({ minimum: 0, description: "Grows; not without gaps." }),
  at: dateTime("When it happened."),
  run: Type.Integer({ minimum: 1, description: "A manual retry begins the next run." }),
  type: Type.Enum([...TYPES], { type: "string" }),
  status: Status,
  actor: Type.Optional(Type.String({ description: "Who decided." })),
  reason: Type.Optional(nullable(Type.String())),
  attempt: Type.Optional(Type.Integer({ minimum: 1 })),
  attempts: Type.Optional(Type.Integer({ minimum: 0 })),
  outcome: Type.Optional(Type.Enum(["answered", "not_sent", "unknown"], { type: "string" })),
  response_code: Type.Optional(nullable(Type.Integer())),
  error: Type.Optional(nullable(Type.String())),
  duration_ms: Type.Optional(nullable(Type.Integer({ minimum: 0 }))),
  next_retry_at: Type.Optional(nullable(dateTime("The attempt after this one."))),
  location: Type.Optional(nullable(Type.String({ description: "Where a redirect, never followed, points." }))),
  event: Type.Optional(Type.String()),
  delivered: Type.Optional(Type.Boolean()),
});

export const Timeline = Type.Object({ data: Type.Array(TimelineItem) });

/** A timeline as JSON text. */
export function timelineJson(entries: readonly TimelineEntry[]): string {
  return JSON.stringify({ data: entries.map(itemOf) });
}

function itemOf({ seq, at, run, status, happening }: TimelineEntry) {
  const { type, ...told } = happening;
  return { seq, at: at.toISOString(), run, type, status, ...told };
}
