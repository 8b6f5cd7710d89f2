import { compactJson } from "./json.ts";
import { elementsIn, membersIn } from "./json-walk.ts";

/** A plain value in a JSON text, as it is written, and its path: `items[0].amount`. */
export interface JsonLeaf {
  readonly path: string;
  readonly text: string;
}

/**
 * The plain values of a JSON text, with paths that begin with `root`; one more than `max` of those that have more. Empty lists and
 * objects are values too, so that an object with one more member has another leaf. Null: it is no JSON.
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

/** Other names are quoted in a path, so that no two paths are written the same: `{"a.b":1}` is not `{"a":{"b":1}}`. */
const PLAIN_NAME = /^[^.[\]"]+$/;
