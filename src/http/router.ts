import { Elysia, NotFoundError } from "elysia";
import { createUnrouted } from "./allow.ts";
import { type RequestContext, callerOf } from "./context.ts";
import type { ApiOperation } from "../api/operations.ts";
import { authorize } from "../accounts/roles.ts";
import type { PageKind } from "./page.ts";

/** Finds the route of a request and runs it. Errors are handed to `refuse`. */
type Router = (context: RequestContext) => Promise<Response>;

type Refuse = (context: RequestContext, error: unknown) => Response;

/**
 * Elysia only matches paths here; it parses and validates nothing. It gets the path that the handler has read and guarded
 * instead of the request, so that the guard and the route can't read two different paths.
 */
export function createRouter(routes: readonly Route[], refuse: Refuse): Router {
  const unrouted = createUnrouted(routes);
  // `standardHostname: false`, or a short host name would shift the path (elysia#748).
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } });
  // Registered first: Elysia applies a hook only to routes added after it.
  app.onError(({ error, request }) => {
    const context = contextOf(request);
    if (!(error instanceof NotFoundError)) return refuse(context, error);
    const answer = unrouted(context.request.method, context.path);
    return answer instanceof Response ? answer : refuse(context, answer);
  });
  for (const { method, path, answer } of routes) {
    // Async, so that a rejected promise reaches `onError` too.
    const handle = async ({ request, params }: { request: Request; params?: RawParams }) => {
      const context = contextOf(request);
      context.route = path;
      return await answer(context, withoutNulls(params));
    };
    app.route(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), handle, { parse: "none" });
  }
  const find = app.fetch;
  return async (context) => await find(asRequest(context));
}

type RawParams = Readonly<Record<string, string | null>>;

/** Elysia passes null for what can't be decoded, like `%zz`. No valid parameter is empty, so that becomes "". */
function withoutNulls(params: RawParams | undefined): Params {
  return Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, value ?? ""]));
}

interface Routed {
  readonly url: string;
  readonly method: string;
  readonly context: RequestContext;
}

/** HEAD is routed as GET; Bun leaves out the body. */
function asRequest(context: RequestContext): Request {
  const { method } = context.request;
  const routed: Routed = {
    url: `http://localhost${context.path}`,
    method: method === "HEAD" ? "GET" : method,
    context,
  };
  // Safe: Elysia reads only `url` and `method` to find a route, and passes the object on; no route has a parser or a schema.
  return routed as unknown as Request;
}

function contextOf(request: Request): RequestContext {
  // Safe: every argument was made by `asRequest`.
  return (request as unknown as Routed).context;
}

/** Path parameters, percent-decoded. */
export type Params = Readonly<Record<string, string>>;

/** Checks Host and Origin of a request, before its key. Throws `forbidden` or `Misdirected`. */
export type Guard = (headers: Headers) => void;

/** One route. What `answer` throws becomes an error envelope or an error page. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{name}` for a parameter. */
  readonly path: string;
  /** The operation in `api/operations.ts`; null for routes that the API description doesn't list. */
  readonly operationId: string | null;
  /** Set on a path outside /v1 that needs a key; the same for every method of the path. */
  readonly guard?: Guard;
  readonly answer: (context: RequestContext, params: Params) => Response | Promise<Response>;
}

/** The route of an operation. Checks the caller's role before query, body and look-up, so that a refusal reveals nothing. */
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

/** A route for people: its errors are shown as a page. */
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
