import Type from "typebox";
import { DomainError } from "../domain/errors.ts";
import type { Action } from "./action.ts";

/** The `data` of an event, and the body of a callback. */
export interface ActionEvent {
  /** `action.` and the status that the action has come to. */
  readonly type: string;
  readonly timestamp: string;
  readonly data: Action;
}

/** What the stream is made of (decisions 12). */
export const EventText = Type.String({
  description:
    "Server-sent events. Each change of an action's status is one event: `id` is where it stands, for Last-Event-ID; " +
    "`event` is `action.<status>`; `data` is `{ type, timestamp, data }`, of which `data` is the Action as it was then " +
    "(only the body of an answer that a later attempt has replaced is not kept). Lines that begin with a colon say " +
    "nothing but that the stream lives.",
  examples: [
    "id: NDcxMQ\nevent: action.completed\n" +
      'data: {"type":"action.completed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwa5v00e7v8c9x2m4n6p8qr"}}\n\n',
  ],
});

/** What callbacks and the event stream say of a change (decisions 8, 12). `data` is an action as JSON text. */
export function eventJson(type: string, at: Date, data: string): string {
  return `{"type":"${type}","timestamp":"${at.toISOString()}","data":${data}}`;
}

/** A position in the event stream as an opaque text: callers shall not count on its being a number. */
export function positionText(position: number): string {
  return Buffer.from(String(position)).toString("base64url");
}

const POSITION = /^\d{1,15}$/;

/** The position in a `Last-Event-ID`. Throws `invalid_query` when it is none of ours. */
export function readPosition(text: string): number {
  const digits = Buffer.from(text, "base64url").toString("latin1");
  const position = Number(digits);
  // Decoding is lenient: only what encodes to the same text again was ours.
  if (POSITION.test(digits) && positionText(position) === text) return position;
  throw unknownPosition("Is not the id of an event of this stream.");
}

/** `Last-Event-ID` is no place from which the stream could go on without a gap. */
export function unknownPosition(message: string): DomainError {
  return new DomainError("invalid_query", "The stream can't go on from this Last-Event-ID; open it without one.", [
    { field: "Last-Event-ID", message },
  ]);
}
