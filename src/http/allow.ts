import { DomainError } from "../api/domain-error.ts";

/** A route as far as its methods are concerned. */
interface KnownRoute {
  readonly method: string;
  /** With `{name}` for a parameter. */
  readonly path: string;
}

/** The response where no route matches: 204 to OPTIONS, else 405 or 404. */
type Unrouted = (method: string, path: string) => Response | DomainError;

export function createUnrouted(routes: readonly KnownRoute[]): Unrouted {
  const known = [...Map.groupBy(routes, (route) => route.path)].map(([path, same]) => ({
    segments: segmentsOf(path),
    allow: allowOf(same.map((route) => route.method)),
  }));
  return (method, path) => {
    const given = segmentsOf(path);
    const allow = known.find(({ segments }) => matches(segments, given))?.allow;
    if (allow === undefined) return new DomainError("not_found", "This path does not exist.");
    if (method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
    return new MethodNotAllowed(allow);
  };
}

/** 405 with the methods of the path. */
export class MethodNotAllowed extends DomainError {
  readonly allow: string;

  constructor(allow: string) {
    super("method_not_allowed", `This path takes ${allow.replaceAll(", ", " or ")}.`);
    this.allow = allow;
  }
}

/** The value of `Allow`, sorted; HEAD wherever GET is. */
function allowOf(methods: readonly string[]): string {
  const all = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  return [...new Set(all)].toSorted().join(", ");
}

/** Whether a path matches a route; `{name}` stands for one segment that is not empty. */
function matches(route: readonly string[], path: readonly string[]): boolean {
  return route.length === path.length && route.every((segment, at) => matchesSegment(segment, path[at] ?? ""));
}

/** One trailing slash makes no difference. */
function segmentsOf(path: string): readonly string[] {
  return (path.endsWith("/") ? path.slice(0, -1) : path).split("/");
}

function matchesSegment(pattern: string, segment: string): boolean {
  return pattern.startsWith("{") ? segment !== "" : pattern === segment;
}
