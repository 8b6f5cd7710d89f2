import { DomainError } from "../domain/errors.ts";

/** The routes as far as they can be told from outside: which methods a path has. */
export interface KnownRoute {
  readonly method: string;
  /** With `{name}` for a parameter. */
  readonly path: string;
}

/** What a request gets that no route answers: 204 to OPTIONS, 405, or 404 (hostile 1). */
export type Unrouted = (method: string, path: string) => Response | DomainError;

export function createUnrouted(routes: readonly KnownRoute[]): Unrouted {
  const known = [...Map.groupBy(routes, (route) => route.path)].map(([path, same]) => ({
    pattern: patternOf(path),
    allow: allowOf(same.map((route) => route.method)),
  }));
  return (method, path) => {
    const allow = known.find(({ pattern }) => pattern.test(path))?.allow;
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

/** One trailing slash makes no difference. */
function patternOf(path: string): RegExp {
  const escaped = path.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`);
  const open = escaped.replaceAll(/\{[^}]+\}/g, "[^/]+");
  return new RegExp(`^${open}${open.endsWith("/") ? "?" : "/?"}$`);
}
