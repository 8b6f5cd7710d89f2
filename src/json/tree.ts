import { compactJson } from "./json.ts";
import { elementsIn, membersIn } from "./walk.ts";

/** A JSON value to be shown. `text` is its source: numbers and escapes stay as they are sent. */
export type JsonNode =
  | { readonly kind: "object"; readonly text: string; readonly members: readonly (readonly [name: string, JsonNode])[] }
  | { readonly kind: "list"; readonly text: string; readonly elements: readonly JsonNode[] }
  /** `value` is the decoded string. */
  | { readonly kind: "string"; readonly text: string; readonly value: string }
  | { readonly kind: "number" | "word"; readonly text: string };

interface TreeLimits {
  readonly nodes: number;
  readonly chars: number;
}

/**
 * The tree of a compact JSON text; null: it is larger than the limits, or not as `compactJson` writes it. So a tree leaves out
 * nothing: of a text with two members of one name, as another program could have stored it, there is none.
 */
export function jsonTree(json: string, limits: TreeLimits): JsonNode | null {
  if (json.length > limits.chars) return null;
  try {
    return compactJson(json) === json ? nodeOf(json, { left: limits.nodes }) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** `text` is compact. Null once no node is left. */
function nodeOf(text: string, counter: { left: number }): JsonNode | null {
  counter.left -= 1;
  if (counter.left < 0) return null;
  if (text.startsWith("{")) {
    const members: [string, JsonNode][] = [];
    for (const [name, value] of membersIn(text)) {
      const node = nodeOf(value, counter);
      if (node === null) return null;
      members.push([name, node]);
    }
    return { kind: "object", text, members };
  }
  if (text.startsWith("[")) {
    const elements: JsonNode[] = [];
    for (const value of elementsIn(text)) {
      const node = nodeOf(value, counter);
      if (node === null) return null;
      elements.push(node);
    }
    return { kind: "list", text, elements };
  }
  if (text.startsWith('"')) return { kind: "string", text, value: String(JSON.parse(text)) };
  return { kind: /^[-\d]/.test(text) ? "number" : "word", text };
}
