import type { ApiOperation } from "../contract/operations.ts";
import { authorize } from "../domain/caller.ts";
import type { PageKind } from "./page.ts";
import { callerOf, type RequestContext } from "./visit.ts";

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
