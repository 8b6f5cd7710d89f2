/** A JSON value with numbers made by `Hooks.number`. An object is a Map, since a member may be called `constructor`. */
export type JsonValue<Num> = string | boolean | null | Num | JsonValue<Num>[] | Map<string, JsonValue<Num>>;

/** Functions that the reader calls on its way. Each may throw, which ends the reading. */
interface Hooks<Num> {
  readonly number: (text: string) => Num;
  /** Called for each member. `isTwice`: the object already has a member of that name. */
  readonly name: (name: string, isTwice: boolean) => void;
  /** Called for each object and list with its depth, from 1. */
  readonly depth: (depth: number) => void;
}

/** Reads a text that is valid JSON, with numbers as they are written. A reviver of `JSON.parse` takes five times as long. */
export function readJsonValue<Num>(json: string, hooks: Hooks<Num>): JsonValue<Num> {
  let at = 0;

  function next(): string {
    const from = skipSpace(json, at);
    at = endOfToken(json, from);
    return json.slice(from, at);
  }

  /** The value that begins with this token. */
  function value(token: string, depth: number): JsonValue<Num> {
    if (token === "{" || token === "[") {
      hooks.depth(depth + 1);
      return token === "{" ? object(depth + 1) : list(depth + 1);
    }
    if (token.startsWith('"')) return textIn(token);
    if (token === "null") return null;
    return token === "true" || token === "false" ? token === "true" : hooks.number(token);
  }

  function list(depth: number): JsonValue<Num>[] {
    const items: JsonValue<Num>[] = [];
    for (let token = next(); token !== "]"; token = next()) if (token !== ",") items.push(value(token, depth));
    return items;
  }

  function object(depth: number): Map<string, JsonValue<Num>> {
    const members = new Map<string, JsonValue<Num>>();
    for (let token = next(); token !== "}"; token = next()) {
      if (token === ",") continue;
      const name = textIn(token);
      hooks.name(name, members.has(name));
      // The colon.
      next();
      members.set(name, value(next(), depth));
    }
    return members;
  }

  return value(next(), 0);
}

function textIn(written: string): string {
  return written.includes("\\") ? String(JSON.parse(written)) : written.slice(1, -1);
}

/**
 * The members of an object in their order, with each value as text. The text must be valid JSON without white space
 * (`compactJson`). A parser would reorder names that are numbers, and build values for a megabyte that is refused afterwards.
 */
export function* membersIn(json: string): Generator<readonly [name: string, text: string]> {
  for (let at = 1; json[at] === '"';) {
    const end = endOfString(json, at);
    const valueEnd = endOfValue(json, end + 1);
    yield [String(JSON.parse(json.slice(at, end))), json.slice(end + 1, valueEnd)];
    at = valueEnd + 1;
  }
}

/** The elements of a list, as texts. The text must be valid JSON without white space, too. */
export function* elementsIn(json: string): Generator<string> {
  for (let at = 1; at < json.length && json[at] !== "]";) {
    const end = endOfValue(json, at);
    yield json.slice(at, end);
    at = end + 1;
  }
}

export function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** Where all brackets of a value are closed, without checking that their kinds match. If it is cut, the end of the text. */
export function endOfValue(text: string, start: number): number {
  if (!isOpening(text.charCodeAt(start))) return endOfToken(text, start);
  let depth = 0;
  for (let at = start; at < text.length;) {
    const code = text.charCodeAt(at);
    at = code === QUOTE ? endOfString(text, at) : at + 1;
    if (isOpening(code)) depth += 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

function isOpening(code: number): boolean {
  return code === OPEN_OBJECT || code === OPEN_LIST;
}

/** The end of a string, number or word, or of one other character. */
export function endOfToken(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  WORD.lastIndex = start;
  return WORD.test(text) ? WORD.lastIndex : start + 1;
}

const WORD = /[^{}[\]:,"\s]+/y;

/** The index after the closing quote. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

/** A name as targets that ignore case compare it: Go reads `ſ` as `s` and the sign of Kelvin as `k`. */
export function foldName(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : name.normalize("NFKC").toUpperCase().toLowerCase();
}

const ASCII = /^[ -~]*$/;

/**
 * What else some targets read the name of a field or parameter as: PHP drops leading spaces and anything after NUL, and writes
 * `_` for dots, spaces and an open bracket; Rack and qs drop brackets around it.
 */
export function otherNames(name: string): readonly string[] {
  if (PLAIN_FIELD.test(name)) return [];
  const [given = ""] = name.replace(/^ +/, "").split("\0", 1);
  const open = given.indexOf("[");
  const end = open > 0 && given.includes("]", open) ? open : given.length;
  const php = given.slice(0, end).replaceAll(/[ .[]/g, "_") + given.slice(end);
  const rack = /^[[\]]*([^[\]]+)\]*$/.exec(name)?.[1] ?? php;
  return [php, rack].filter((other) => other !== name);
}

/** The field that PHP, Rails and qs build from several names: `amount` from `amount[]` and `amount[0]`. Null: none. */
export function wholeName(name: string): string | null {
  const open = name.indexOf("[");
  return open > 0 ? name.slice(0, open) : null;
}

const PLAIN_FIELD = /^[\w-]+(\[[\w-]*\])*$/;
