import Type, { type TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import { key } from "./kinds.ts";

const requestId = (description: string) =>
  Type.String({ pattern: "^[A-Za-z0-9._:-]{1,128}$", description, examples: ["my-id.7"] });

/** Headers of requests that say more than HTTP itself does. */
export const REQUEST_HEADERS = {
  "Idempotency-Key": key(
    "Creates of one account with the same value within 24 hours are the same create, whether the first was answered 201 or 200; a refused create is not remembered. Asked before `dedupe`. Quotes around it, as the draft RFC has them, do not count: neither as part of the key nor for its length.",
  ),
  "Last-Event-ID": Type.String({
    pattern: "^[A-Za-z0-9_-]+$",
    description:
      "Id of the last event that was seen: the stream goes on behind it. Without it the stream begins now. An id that " +
      "is none of this stream is refused with 400.",
    examples: ["NDcxMQ"],
  }),
  "X-Request-Id": requestId(
    "Echoed back in the answer's X-Request-Id. No request is refused for it: what is not of this form is replaced by an " +
      "id of ours. An error's request_id is this id where it begins with req_, else one of ours.",
  ),
} as const satisfies Readonly<Record<string, TSchema>>;

export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers of answers. */
export const ANSWER_HEADERS = {
  "X-Request-Id": requestId("Finds this request in the service's log: the request's own id, or one of ours."),
  Location: Type.String({
    format: "uri-reference",
    description: "Where the new action is.",
    examples: ["/v1/actions/act_01kjwa5v00e7v8c9x2m4n6p8qr"],
  }),
  "Retry-After": Type.Integer({ minimum: 1, description: "Seconds to wait before the next request.", examples: [1] }),
  Allow: Type.String({
    pattern: "^[A-Z]+(, [A-Z]+)*$",
    description: "Methods that the path takes.",
    examples: ["GET, HEAD, POST"],
  }),
  "WWW-Authenticate": Type.Literal("Bearer", { description: "How to authenticate.", examples: ["Bearer"] }),
  "Set-Cookie": Type.String({
    description: "The session of the pages for people: where it begins, or its end. Under /v1 it is worth nothing.",
    examples: ["outgate_session=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"],
  }),
  "Cache-Control": Type.String({
    pattern: "^(private, )?no-store$",
    description: "The answer is for who asked: nobody on its way may keep it.",
    examples: ["no-store"],
  }),
  Vary: Type.Literal("Accept", { description: "The same path answers in several forms.", examples: ["Accept"] }),
  "Referrer-Policy": Type.Literal("no-referrer", {
    description: "The path is a secret: no other site is told of it.",
    examples: ["no-referrer"],
  }),
  "X-Robots-Tag": Type.Literal("noindex, nofollow, noarchive", {
    description: "No search engine may keep it.",
    examples: ["noindex, nofollow, noarchive"],
  }),
  "X-Content-Type-Options": Type.Literal("nosniff", {
    description: "It is what its type says, whatever it looks like.",
    examples: ["nosniff"],
  }),
  "X-Frame-Options": Type.Literal("DENY", { description: "No page may frame it.", examples: ["DENY"] }),
  "Cross-Origin-Resource-Policy": Type.Literal("same-origin", {
    description: "No page of another origin may load it.",
    examples: ["same-origin"],
  }),
  "X-Accel-Buffering": Type.Literal("no", { description: "Proxies pass each event on at once.", examples: ["no"] }),
} as const satisfies Readonly<Record<string, TSchema>>;
export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** What an answer at a path that is a secret carries, page or not (hostile 7). */
export const SECRET_PATH_HEADERS = [
  "Cache-Control",
  "Vary",
  "Referrer-Policy",
  "X-Robots-Tag",
  "X-Content-Type-Options",
  "X-Frame-Options",
  "Cross-Origin-Resource-Policy",
] as const satisfies readonly AnswerHeader[];

/** What an error of this kind says in its head beside its id (decisions 2). */
export const ERROR_HEADERS: Readonly<Partial<Record<ErrorCode, AnswerHeader>>> = {
  unauthorized: "WWW-Authenticate",
  rate_limited: "Retry-After",
  unavailable: "Retry-After",
  method_not_allowed: "Allow",
};
