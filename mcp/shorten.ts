import { BASE64_START } from "../src/core/body.ts";
import { isBytes } from "../src/receipts/cut-body.ts";
import { beginning } from "../src/core/json.ts";
import { membersIn } from "../src/core/json-values.ts";

export type JsonMember = readonly [name: string, text: string];

/** The members of our own JSON, which has no white space, except those that are null. */
export function presentMembers(json: string): readonly JsonMember[] {
  return [...membersIn(json)].filter(([, text]) => text !== "null");
}

export function joinMembers(members: readonly JsonMember[]): string {
  return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/**
 * Cuts members so that their object has at most `bytesMax`: the longest first, each to the same length. Members with `isWhole`
 * are never cut. `cut`: the names of members that show only their beginning.
 */
export function shortenMembers(
  members: readonly JsonMember[],
  bytesMax: number,
  isWhole: (name: string) => boolean = () => false,
) {
  const sizes = members.map(([, text]) => Buffer.byteLength(text));
  const all = Buffer.byteLength(joinMembers(members));
  if (all <= bytesMax) return { members, cut: [] };
  const cuttable = sizes.filter((_, at) => !isWhole(members[at]?.[0] ?? ""));
  const room = bytesMax - all + cuttable.reduce((sum, size) => sum + size, 0);
  const length = commonLength(cuttable, room);
  const cut: string[] = [];
  const kept = members.map(([name, text], at): JsonMember => {
    if (isWhole(name) || (sizes[at] ?? 0) <= length) return [name, text];
    cut.push(name);
    return [name, cutText(name, text, length)];
  });
  return { members: kept, cut };
}

/** The greatest common length at which all fit into the room. */
function commonLength(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((one, other) => one - other);
  let left = room;
  for (const [at, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at));
    if (size > share) return Math.max(0, share);
    left -= size;
  }
  return Infinity;
}

/** Our own objects, of which the longest members are cut. */
export const NESTED: ReadonlySet<string> = new Set(["late_result", "pause", "policy", "created_by", "error"]);

/** Objects whose first members are kept whole. */
const MAPS: ReadonlySet<string> = new Set(["headers", "metadata", "form"]);

/** Bodies, which begin exactly as they were sent or answered; a note describes the cut. */
const EXACT: ReadonlySet<string> = new Set(["body", "json", "text", "response_body"]);

const MARK = "…";

/** The JSON text of a value's beginning. */
function cutText(name: string, text: string, bytesMax: number): string {
  if (NESTED.has(name)) return joinMembers(shortenMembers(presentMembers(text), bytesMax).members);
  if (MAPS.has(name) && text.startsWith("{")) return firstMembers(text, bytesMax);
  const value: unknown = text.startsWith('"') || text.startsWith(BASE64_START) ? JSON.parse(text) : text;
  if (isBytes(value)) {
    const data = whole64(value.data, bytesMax - BASE64_START.length - '"}'.length);
    return JSON.stringify({ encoding: "base64", data });
  }
  const written = typeof value === "string" ? value : text;
  if (name === "base64") return JSON.stringify(whole64(written, bytesMax - '""'.length));
  return JSON.stringify(EXACT.has(name) ? beginning(written, bytesMax) : beginning(written, bytesMax, MARK));
}

/** Base64 that can be decoded. */
function whole64(text: string, charsMax: number): string {
  return text.slice(0, Math.max(0, charsMax - (charsMax % 4)));
}

function firstMembers(json: string, bytesMax: number): string {
  const kept: JsonMember[] = [];
  let bytes = "{".length;
  for (const [name, text] of membersIn(json)) {
    bytes += Buffer.byteLength(JSON.stringify(name)) + Buffer.byteLength(text) + ":,".length;
    if (bytes > bytesMax) break;
    kept.push([name, text]);
  }
  return joinMembers(kept);
}
