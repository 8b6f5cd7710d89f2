import type { Server } from "bun";
import { errorJson, HTTP_STATUS } from "../contract/error.ts";
import type { Ids } from "../ports/ids.ts";
import { json } from "./answer.ts";
import { listenOn } from "./listen.ts";
import { nameRequest } from "./request-id.ts";
import { targetOf } from "./visit.ts";

export interface ClosedDeps {
  readonly ids: Pick<Ids, "request">;
  readonly version: string;
}

/**
 * Answers while the store can't be opened, as the real door does while it can't be written: 503 to everything but to the
 * question whether the process lives. Whoever opens the real door goes on with the same socket.
 */
export function openClosedDoor(port: number, host: string, deps: ClosedDeps): Server<unknown> {
  return listenOn({ port, host }, (request) => answerClosed(request, deps));
}

/** The same answer for everybody: nobody can be told who asks, nor what there is. */
export function answerClosed(request: Request, { ids, version }: ClosedDeps): Response {
  const name = nameRequest(request.headers.get("x-request-id"), ids);
  const { path } = targetOf(request.url);
  const answer = answerTo(path, name.envelopeId(), version);
  answer.headers.set("x-request-id", name.id);
  // What follows on a connection whose body nobody reads is not executed.
  answer.headers.set("connection", "close");
  return answer;
}

function answerTo(path: string, requestId: string, version: string): Response {
  if (path === "/health") return json(JSON.stringify({ status: "ok", version }));
  const later = { "retry-after": "1" };
  if (path === "/ready") return json(JSON.stringify({ status: "unavailable", version }), 503, later);
  const message = "The service starts and can't reach its store yet; try again.";
  const text = errorJson({ code: "unavailable", message, requestId, issues: [] });
  return json(text, HTTP_STATUS.unavailable, later);
}
