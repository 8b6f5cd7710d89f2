import { DomainError } from "../api/domain-error.ts";

/** The routes as far as they can be told from outside: which methods a path has. */
interface KnownRoute {
  readonly method: string;
  /** With `{name}` for a parameter. */
  readonly path: string;
}

/** What a request gets that no route answers: 204 to OPTIONS, 405, or 404 (hostile 1). */
type Unrouted = (method: string, path: string) => Response | DomainError;

export function createUnrouted(routes: readonly KnownRoute[]): Unrouted {
  const known = [...Map.groupBy(routes, (route) => route.path)].map(([path, same]) => ({
    segments: segmentsOf(path),
    allow: allowOf(same.map((route) => route.method)),
  }));
  return (method, path) => {
    const given = segmentsOf(path);
    const allow = known.find(({ segments }) => isPathOf(segments, given))?.allow;
    if (allow === undefined) return new DomainError("not_found", "There is nothing at this path.");
    if (method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
    return new MethodNotAllowed(allow);
  };
}

/** 405 with the methods that the path has. */
export class MethodNotAllowed extends DomainError {
  readonly allow: string;

  constructor(allow: string) {
    super("method_not_allowed", `This path takes ${allow.replaceAll(", ", " or ")}.`);
    this.allow = allow;
  }
}

/** HEAD wherever GET is. In the order of the alphabet, so that it is the same everywhere. */
function allowOf(methods: readonly string[]): string {
  const all = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  return [...new Set(all)].toSorted().join(", ");
}

/** Whether a path is one of a route; `{name}` stands for one segment. */
function isPathOf(route: readonly string[], path: readonly string[]): boolean {
  return route.length === path.length && route.every((segment, at) => isSegmentOf(segment, path[at] ?? ""));
}

/** One trailing slash makes no difference. */
function segmentsOf(path: string): readonly string[] {
  return (path.endsWith("/") ? path.slice(0, -1) : path).split("/");
}

function isSegmentOf(wanted: string, given: string): boolean {
  return wanted.startsWith("{") ? given !== "" : wanted === given;
}
