import type { Server } from "bun";
import { errorJson, HTTP_STATUS } from "../contract/error.ts";
import type { Ids } from "../ports/ids.ts";
import { problemPage } from "../web/problem.tsx";
import { isForPrograms, namesHtml, prefersJson } from "./accept.ts";
import { json } from "./answer.ts";
import { listenOn } from "./listen.ts";
import { page } from "./page.ts";
import { nameRequest, type RequestName } from "./request-id.ts";
import { targetOf } from "./visit.ts";

export interface ClosedDeps {
  readonly ids: Pick<Ids, "request">;
  readonly version: string;
}

/**
 * Answers while the store can't be opened, as the real door does while it can't be written: 503 to everything but to the
 * question whether the process lives. Whoever opens the real door goes on with the same socket.
 */
export function openUnavailableServer(port: number, host: string, deps: ClosedDeps): Server<unknown> {
  return listenOn({ port, host }, (request) => answerClosed(request, deps));
}

/** The same answer for everybody: nobody can be told who asks, nor what there is. */
export function answerClosed(request: Request, { ids, version }: ClosedDeps): Response {
  const name = nameRequest(request.headers.get("x-request-id"), ids);
  const { path } = targetOf(request.url);
  const answer = answerToProbe(path, version) ?? refusal(request, path, name);
  answer.headers.set("x-request-id", name.id);
  // What follows on a connection whose body nobody reads is not executed.
  answer.headers.set("connection", "close");
  return answer;
}

function answerToProbe(path: string, version: string): Response | null {
  if (path === "/health") return json(JSON.stringify({ status: "ok", version }));
  if (path === "/ready") return json(JSON.stringify({ status: "unavailable", version }), STATUS, LATER);
  return null;
}

const STATUS = HTTP_STATUS.unavailable;
const LATER = { "retry-after": "1" };
const MESSAGE = "The service starts and can't reach its store yet; try again.";

/** A person gets a page that loads nothing, since nothing else is answered here. */
function refusal(request: Request, path: string, name: RequestName): Response {
  if (isForPrograms(path) || !namesHtml(request) || prefersJson(request)) {
    const text = errorJson({ code: "unavailable", message: MESSAGE, requestId: name.envelopeId(), issues: [] });
    return json(text, STATUS, LATER);
  }
  const html = problemPage({ status: STATUS, message: MESSAGE, requestId: name.id, isAlone: true });
  return page("notice", html, { status: STATUS, headers: { ...LATER, vary: "Accept" } });
}
