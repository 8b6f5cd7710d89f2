import { compactJson } from "../core/json.ts";
import { elementsIn, membersIn } from "../core/json-walk.ts";

/** A name that JavaScript takes for an index, and moves before all others. */
const INDEX = /^\d{1,10}$/;

const INDEX_IN_JSON = /"\d{1,10}"\s*:/;

/**
 * An object that is enumerated, and written as JSON, in the order of its entries, also where names are whole numbers: the
 * fields of a form are sent in this order. The last value of a name counts.
 */
export function inOrder<Value>(entries: readonly (readonly [name: string, value: Value])[]) {
  const object: Readonly<Record<string, Value>> = Object.fromEntries(entries);
  if (!entries.some(([name]) => INDEX.test(name))) return object;
  const names = [...new Set(entries.map(([name]) => name))];
  return new Proxy(object, { ownKeys: () => names });
}

/** A value that was parsed from this JSON, with the members of its objects in the order of the text. */
export function inWrittenOrder(value: unknown, json: string): unknown {
  return INDEX_IN_JSON.test(json) ? ordered(value, compactJson(json)) : value;
}

function ordered(value: unknown, json: string): unknown {
  if (!INDEX_IN_JSON.test(json) || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const texts = [...elementsIn(json)];
    return value.map((element: unknown, at) => ordered(element, texts[at] ?? ""));
  }
  const members: Readonly<Record<string, unknown>> = { ...value };
  return inOrder([...membersIn(json)].map(([name, text]) => [name, ordered(members[name], text)] as const));
}
