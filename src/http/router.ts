import { Elysia, NotFoundError } from "elysia";
import { createUnrouted } from "./allow.ts";
import { type RequestContext, callerOf } from "./context.ts";
import type { ApiOperation } from "../api/operations.ts";
import { authorize } from "../accounts/roles.ts";
import type { PageKind } from "./page.ts";

/** Finds the route of a visit and lets it answer. Whatever goes wrong there is handed to `refuse`. */
type Router = (context: RequestContext) => Promise<Response>;

type Refuse = (context: RequestContext, error: unknown) => Response;

/**
 * Elysia only routes here: it parses, checks and names nothing, and its hooks are one. It is given the path that the door
 * has read and guarded, and not the request, so that both can't disagree about it.
 */
export function createRouter(routes: readonly Route[], refuse: Refuse): Router {
  const unrouted = createUnrouted(routes);
  // `standardHostname: false`, or a short host name would shift the path (elysia#748).
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } });
  // Before the routes: one that stands before it does not see it.
  app.onError(({ error, request }) => {
    const context = contextOf(request);
    if (!(error instanceof NotFoundError)) return refuse(context, error);
    const answer = unrouted(context.request.method, context.path);
    return answer instanceof Response ? answer : refuse(context, answer);
  });
  for (const { method, path, answer } of routes) {
    // Async, so that a rejection comes to `onError` too.
    const handle = async ({ request, params }: { request: Request; params?: RawParams }) => {
      const context = contextOf(request);
      context.route = path;
      return await answer(context, readable(params));
    };
    app.route(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), handle, { parse: "none" });
  }
  const find = app.fetch;
  return async (context) => await find(asRequest(context));
}

type RawParams = Readonly<Record<string, string | null>>;

/** Elysia makes null of what can't be decoded, as `%zz`; no parameter of ours is empty, so empty stands for that too. */
function readable(params: RawParams | undefined): Params {
  if (params === undefined) return NONE;
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value ?? ""]));
}

const NONE: Params = {};

interface Routed {
  readonly url: string;
  readonly method: string;
  readonly context: RequestContext;
}

/** HEAD is GET whose body Bun leaves out. */
function asRequest(context: RequestContext): Request {
  const { method } = context.request;
  const routed: Routed = {
    url: `http://localhost${context.path}`,
    method: method === "HEAD" ? "GET" : method,
    context,
  };
  // Safe: to find a route Elysia reads `url` and `method`, and hands the object on; no route has a parser or a schema.
  return routed as unknown as Request;
}

function contextOf(request: Request): RequestContext {
  // Safe: only `asRequest` makes what comes in here.
  return (request as unknown as Routed).context;
}

/** Path parameters, percent-decoded. */
export type Params = Readonly<Record<string, string>>;

/** Throws what is wrong with where a request comes from; asked before its key is looked at. */
export type Guard = (headers: Headers) => void;

/** One way in. `answer` throws what is wrong; the door makes an envelope of it. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{name}` for a parameter. */
  readonly path: string;
  /** Of the operations table, when the route belongs to one. */
  readonly operationId: string | null;
  /** Set where a key is asked for outside of /v1; the same for every method of a path. */
  readonly guard?: Guard;
  readonly answer: (context: RequestContext, params: Params) => Response | Promise<Response>;
}

/**
 * The route of an operation. The caller's role is asked for first, before query, body and look-up, so that a refusal
 * tells nothing about them (hostile 1).
 */
export function routeOf(operation: ApiOperation, answer: Route["answer"]): Route {
  const { method, path, id, permission } = operation;
  if (permission === null) return { method, path, operationId: id, answer };
  return {
    method,
    path,
    operationId: id,
    answer(context, params) {
      authorize(callerOf(context), permission);
      return answer(context, params);
    },
  };
}

/** A way in for people: whatever goes wrong there is told them as a page. */
export function pageRoute(kind: PageKind, method: Route["method"], path: string, answer: Route["answer"]): Route {
  return {
    method,
    path,
    operationId: null,
    answer(context, params) {
      context.page = kind;
      return answer(context, params);
    },
  };
}
