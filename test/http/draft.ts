import * as fc from "fast-check";
import { STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";

/** A request before it is made. `{action 3}` and `{key 3}` in its path stand for what was created before. */
export interface Draft {
  readonly kind: "valid" | "nearly valid" | "hostile";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** The field that has to be named in a 400. */
  readonly wrong: string | null;
}

export const OWNER = `Bearer ${KEYS.owner}`;

export const JSON_TYPE = { "content-type": "application/json" } as const;

export const someKey = fc.constantFrom(
  ...[OWNER, OWNER, OWNER, OWNER].concat(
    [KEYS.agent, KEYS.approver, KEYS.reader, STRANGER].map((key) => `Bearer ${key}`),
  ),
);

export const known = (what: string) => fc.nat({ max: 9_999 }).map((index) => `{${what} ${index}}`);

export function searchOf(pairs: readonly (readonly [string, unknown])[]): string {
  const search = new URLSearchParams();
  for (const [name, value] of pairs) for (const one of [value].flat()) search.append(name, wellFormed(String(one)));
  return search.size === 0 ? "" : `?${search.toString()}`;
}

export const wellFormed = (text: string) => text.toWellFormed();
