import { openApiJson } from "../../src/http/openapi.ts";
import { OPERATIONS as LISTED } from "./operations.ts";

/** JSON of which the reader asks what it needs. */
export type Node = Readonly<Record<string, unknown>>;

export const DOCUMENT: Node = JSON.parse(openApiJson(LISTED, "http://127.0.0.1:3000"));

/** The node at the end of these steps; an empty one where there is none. */
export function at(node: unknown, ...steps: readonly string[]): Node {
  const found = steps.reduce<unknown>((from, step) => (isNode(from) ? from[step] : undefined), node);
  return isNode(found) ? found : {};
}

/** The same with the target of each `$ref` in its place. Throws on one that leads nowhere. Nothing of ours is recursive. */
export function inlined(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(inlined);
  if (!isNode(node)) return node;
  const { $ref, ...rest } = node;
  if (typeof $ref !== "string") return Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, inlined(v)]));
  const target = at(DOCUMENT, ...$ref.replace(/^#\//, "").split("/"));
  if (Object.keys(target).length === 0) throw new Error(`${$ref} leads nowhere.`);
  return inlined({ ...target, ...rest });
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  /** With every reference in its place. */
  readonly node: Node;
}

export const OPERATIONS: readonly Operation[] = Object.entries(at(DOCUMENT, "paths")).flatMap(([path, methods]) =>
  Object.entries(at(methods)).map(([method, node]) => ({
    id: String(at(node)["operationId"]),
    method: method.toUpperCase(),
    path,
    node: at(inlined(node)),
  })),
);

/** Every schema of the document that stands by itself: of bodies, parameters, headers and components. */
export function schemasOf(node: unknown, path = "#"): readonly (readonly [path: string, schema: Node])[] {
  if (!isNode(node)) return [];
  return Object.entries(node).flatMap(([name, value]) => {
    const here = `${path}/${name}`;
    if (name === "schema") return [[here, at(value)] as const];
    if (path === "#/components" && name === "schemas") {
      return Object.entries(at(value)).map(([title, schema]) => [`${here}/${title}`, at(schema)] as const);
    }
    return Array.isArray(value)
      ? value.flatMap((one, index) => schemasOf(one, `${here}/${index}`))
      : schemasOf(value, here);
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
