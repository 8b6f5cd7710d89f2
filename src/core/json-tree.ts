import { compactJson } from "./json.ts";
import { elementsIn, membersIn } from "./json-values.ts";

/** A JSON value to be shown. `text` is its source: numbers and escapes stay as they are sent. */
export type JsonNode =
  | {
      readonly kind: "object";
      readonly text: string;
      readonly members: readonly (readonly [name: string, JsonNode])[];
      readonly rest: JsonRest | null;
    }
  | {
      readonly kind: "list";
      readonly text: string;
      readonly elements: readonly JsonNode[];
      readonly rest: JsonRest | null;
    }
  /** `value` is the decoded string. */
  | { readonly kind: "string"; readonly text: string; readonly value: string }
  | { readonly kind: "number" | "word"; readonly text: string };

/** The part of an object or list for which a tree has no nodes left: how many values, and a JSON text of the same kind. */
export interface JsonRest {
  readonly count: number;
  readonly text: string;
}

/**
 * The tree of a compact JSON text. Null: it is longer than the limit, or not as `compactJson` writes it, such as with two members
 * of one name, which another program could have stored. So a tree leaves out nothing: what exceeds its nodes is in it as text.
 */
export function jsonTree(json: string, limits: Readonly<Record<"chars" | "nodes", number>>): JsonNode | null {
  if (json.length > limits.chars) return null;
  try {
    return compactJson(json) === json ? toNode(json, limits.nodes - 1).node : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

interface Made {
  readonly node: JsonNode;
  /** How many nodes are below it. */
  readonly used: number;
}

/** `text` is compact; `budget` is for the nodes below it. */
function toNode(text: string, budget: number): Made {
  if (text.startsWith("{")) return objectNode(text, budget);
  if (text.startsWith("[")) return listNode(text, budget);
  if (text.startsWith('"')) return { node: { kind: "string", text, value: String(JSON.parse(text)) }, used: 0 };
  return { node: { kind: /^[-\d]/.test(text) ? "number" : "word", text }, used: 0 };
}

/** Takes every member before the inside of any, so that a long list can't leave out an amount after it; the shortest first. */
function objectNode(text: string, budget: number): Made {
  const all = [...membersIn(text)];
  const shown = all.slice(0, Math.max(budget, 0));
  const made = new Map<string, JsonNode>();
  let used = shown.length;
  for (const [name, value] of shown.toSorted(([, a], [, b]) => a.length - b.length)) {
    const left = Math.floor((budget - used) / (shown.length - made.size));
    const child = toNode(value, left);
    made.set(name, child.node);
    used += child.used;
  }
  const members = shown.flatMap(([name]): [string, JsonNode][] => {
    const node = made.get(name);
    return node === undefined ? [] : [[name, node]];
  });
  const rest = shown.length === all.length ? null : restNode(partsIn(text).slice(shown.length), "{", "}");
  return { node: { kind: "object", text, members, rest }, used };
}

/** Takes the first elements whole, as long as there are nodes left. */
function listNode(text: string, budget: number): Made {
  const elements: JsonNode[] = [];
  let rest: JsonRest | null = null;
  let used = 0;
  for (const value of elementsIn(text)) {
    if (used >= budget) {
      rest = restNode(partsIn(text).slice(elements.length), "[", "]");
      break;
    }
    const child = toNode(value, budget - used - 1);
    elements.push(child.node);
    used += 1 + child.used;
  }
  return { node: { kind: "list", text, elements, rest }, used };
}

/** The members of an object or the elements of a list, in their order. */
function partsIn(text: string): readonly string[] {
  if (text.startsWith("[")) return [...elementsIn(text)];
  return Array.from(membersIn(text), ([name, value]) => `${JSON.stringify(name)}:${value}`);
}

function restNode(parts: readonly string[], open: string, close: string): JsonRest {
  return { count: parts.length, text: `${open}${parts.join(",")}${close}` };
}

/** A plain value in a JSON text, as written, with its path, such as `items[0].amount`. */
export interface JsonLeaf {
  readonly path: string;
  readonly text: string;
}

/**
 * The plain values of a JSON text, with paths that begin with `root`, but never more than `max` and one. Empty lists and
 * objects count as values, so that an object with one more member has another leaf. Null: it is no JSON.
 */
export function jsonLeaves(json: string, root: string, max: number): readonly JsonLeaf[] | null {
  const leaves: JsonLeaf[] = [];

  function add(path: string, text: string): void {
    if (leaves.length > max) return;
    if (text.startsWith("{") && text !== "{}") {
      for (const [name, value] of membersIn(text)) {
        const step = PLAIN_NAME.test(name) ? name : JSON.stringify(name);
        add(path === "" ? step : `${path}.${step}`, value);
      }
    } else if (text.startsWith("[") && text !== "[]") {
      let at = 0;
      for (const value of elementsIn(text)) {
        add(`${path}[${at}]`, value);
        at += 1;
      }
    } else leaves.push({ path, text });
  }

  try {
    add(root, compactJson(json));
    return leaves;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Names that need no quotes in a path. Others are quoted, so that `{"a.b":1}` and `{"a":{"b":1}}` have different paths. */
const PLAIN_NAME = /^[^.[\]"]+$/;
