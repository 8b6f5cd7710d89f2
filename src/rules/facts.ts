import type { ActionRequest } from "../core/action.ts";
import { bodyMemberOf, formPairs, isJsonMember, sentBody, sentBytes } from "../core/body.ts";
import { endOfToken, skipSpace } from "../core/json-walk.ts";
import { RULE_BODY_CHARS_MAX, RULE_BODY_DEPTH_MAX, RULES_STEPS_MAX } from "../core/limits.ts";
import type { Requester } from "../core/judge.ts";
import { OTHER_METHOD, plainHeaderName } from "../core/method-overrides.ts";
import { type SentTarget, sentTarget } from "../core/sent-target.ts";
import { maskText } from "../receipts/masking.ts";

/** Why an expression can't be decided: a sentence. */
export class Undecidable extends Error {}

/** The parts of a request that rules read. */
export type RuledRequest = Pick<ActionRequest, "method" | "url" | "headers" | "body" | "title" | "extras">;

export const AMBIGUOUS_PATH =
  "The path has a part that targets read in different ways: %2f, %5c, %2e, %25, a code of a control character or of none, a semicolon or two slashes.";

/** Values of an expression: an object is a Map, since its members may be called `constructor`. */
export type FactValue = string | number | bigint | boolean | null | Unreadable | FactValue[] | FactMap;
type FactMap = Map<string, FactValue>;

/** The members of an expression that names of a request are compared with: each with its folded form first. */
export type MemberNames = readonly (readonly [folded: string, name: string])[];

/** A value in a body that no expression can read as it is written. */
interface Unreadable {
  readonly constructor: never;
}

/** cel-js looks at `constructor` of whatever it reads. */
function unreadable(why: string): Unreadable {
  const get = (): never => {
    throw new Undecidable(why);
  };
  return Object.defineProperty({}, "constructor", { get }) as Unreadable;
}

/** `action` of expressions: each part is read when one asks for it, once for all rules of a request. */
export class ActionFacts {
  readonly title: string;
  /** The one that the request counts as now: of a request that names others, each in turn. */
  countsAs: string;
  /** What expressions may still cost for this request. */
  stepsLeft = RULES_STEPS_MAX;
  /** Of the expression that is checked now. */
  names: MemberNames = [];
  readonly #request: RuledRequest;
  readonly #target = lazily(() => sentTarget(this.#request.url));
  readonly #lowerPath = lazily(() => this.#sent.path.toLowerCase());
  readonly #bytes = lazily(() => sentBytes(this.#request));
  readonly #query = lazily(() => queryOf(this.#sent.query));
  readonly #headers = lazily(() => headersOf(this.#request.headers ?? {}));
  readonly #body = lazily(() => bodyOf(this.#request));

  constructor(request: RuledRequest) {
    this.#request = request;
    this.countsAs = request.method;
    this.title = request.title ?? "";
  }

  /** Null: the URL was altered in the database. */
  get target(): SentTarget | null {
    return this.#target();
  }

  /** Of a URL that can be read. */
  get lowerPath(): string {
    return this.#lowerPath();
  }

  get #sent(): SentTarget {
    const target = this.#target();
    if (target === null) throw new Undecidable("Its URL can't be read.");
    return target;
  }

  get method(): string {
    if (this.countsAs !== OTHER_METHOD) return this.countsAs;
    throw new Undecidable("The request names a method that is not known.");
  }

  get host(): string {
    return this.#sent.host;
  }

  get path(): string {
    if (this.#sent.isAmbiguous) throw new Undecidable(AMBIGUOUS_PATH);
    return this.#sent.path;
  }

  get query(): FactValue {
    return valueFor(this.names, this.#query(), "The query");
  }

  get headers(): FactMap {
    return this.#headers();
  }

  get body(): FactValue {
    return valueFor(this.names, this.#body(), "The body");
  }

  get bodyBytes(): number {
    return this.#bytes();
  }

  /** The name of the credential that it is made with; empty: none. */
  get credential(): string {
    return this.#request.extras.credential?.name ?? "";
  }

  get metadata(): FactMap {
    return new Map(Object.entries(this.#request.extras.metadata ?? {}));
  }
}

/** `key` of expressions. A person who creates an action has none: the texts are empty. */
export class KeyFacts {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** The key's own and those of the keys that it replaced, the newest first: rules about these are about it too. No part of expressions. */
  readonly ids: ReadonlySet<string>;

  constructor({ keyId, keyName, role, replaced = NO_IDS }: RuledKey) {
    this.id = keyId ?? "";
    this.name = keyId === null ? "" : keyName;
    this.role = keyId === null ? "" : role;
    this.ids = keyId === null ? NO_IDS : new Set([keyId]).union(replaced);
  }
}

export type RuledKey = Omit<Requester, "accountId">;

const NO_IDS: ReadonlySet<string> = new Set();

/** What rules know of a request. */
export interface CallFacts {
  readonly request: RuledRequest;
  readonly action: ActionFacts;
  readonly key: KeyFacts;
  readonly now: Date;
}

/** Nothing is parsed before a rule reads it. */
export function factsOf(request: RuledRequest, key: RuledKey, now: Date): CallFacts {
  return { request, action: new ActionFacts(request), key: new KeyFacts(key), now };
}

/** A name as targets that ignore case compare it: Go reads `ſ` as `s` and the sign of Kelvin as `k`. */
export function foldName(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : name.normalize("NFKC").toUpperCase().toLowerCase();
}

const ASCII = /^[ -~]*$/;

/** What `make` gives or throws, made once. */
export function lazily<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | { readonly error: unknown } | null = null;
  return () => {
    if (made === null) {
      try {
        made = { value: make() };
      } catch (error) {
        made = { error };
      }
    }
    if ("error" in made) throw made.error;
    return made.value;
  };
}

/** A value, and the names in it by their folded form. */
interface Named {
  readonly value: FactValue;
  readonly names: ReadonlyMap<string, string>;
  /** The names of the expression that they were compared with last. */
  comparedWith?: MemberNames;
}

/** A target that ignores case would read `Amount` as the `amount` of the expression: throws then. */
function valueFor(read: MemberNames, named: Named, what: string): FactValue {
  if (named.comparedWith === read) return named.value;
  for (const [folded, name] of read) {
    const given = named.names.get(folded);
    if (given !== undefined && given !== name) {
      const isCase = foldName(given) === folded;
      const why = isCase ? `differs from "${shown(name)}" only by case` : `some targets read as "${shown(name)}"`;
      throw new Undecidable(`${what} has "${shown(given)}", which ${why}.`);
    }
  }
  named.comparedWith = read;
  return named.value;
}

/** A name that a requester wrote, for sentences that are stored and shown to everybody: it may hold a secret. */
export function shown(name: string): string {
  const masked = maskText(name.slice(0, NAME_CHARS_MAX), "public");
  return masked.length > 40 ? `${masked.slice(0, 40)}…` : masked;
}

const NAME_CHARS_MAX = 1_000;

/** Throws where two names are equal but for case, or as some targets read them: of those, they take either. */
function noteMember(name: string, names: Map<string, string>, what: string, readAs = name): void {
  // As it is written too, since a list has the same names many times.
  if (names.get(readAs) === name) return;
  const folded = foldName(readAs);
  const known = names.get(folded);
  if (known !== undefined && known !== name) {
    const differ = foldName(known) === foldName(name) ? "differ only by case" : "some targets read as the same";
    throw new Undecidable(`${what} has the names "${shown(known)}" and "${shown(name)}", which ${differ}.`);
  }
  names.set(folded, name).set(readAs, name);
}

function twice(name: string, what: string): Undecidable {
  return new Undecidable(`${what} has the name "${shown(name)}" twice.`);
}

function ofPairs(pairs: readonly (readonly [name: string, value: string])[], what: string): Named {
  const names = new Map<string, string>();
  const value: FactMap = new Map();
  for (const [name, text] of pairs) {
    if (value.has(name)) throw twice(name, what);
    noteMember(name, names, what);
    value.set(name, text);
  }
  for (const name of value.keys()) for (const other of otherNames(name)) noteMember(name, names, what, other);
  return { value, names };
}

/**
 * As some targets read the name of a field or parameter: PHP leaves out spaces in front and what follows NUL, and writes `_` for
 * dots, spaces and a bracket that is not closed; Rack and qs leave out brackets around it.
 */
function otherNames(name: string): readonly string[] {
  if (PLAIN_FIELD.test(name)) return [];
  const [given = ""] = name.replace(/^ +/, "").split("\0", 1);
  const open = given.indexOf("[");
  const end = open > 0 && given.includes("]", open) ? open : given.length;
  const php = given.slice(0, end).replaceAll(/[ .[]/g, "_") + given.slice(end);
  const rack = /^[[\]]*([^[\]]+)\]*$/.exec(name)?.[1] ?? php;
  return [php, rack].filter((other) => other !== name);
}

const PLAIN_FIELD = /^[\w-]+(\[[\w-]*\])*$/;

/** Some targets take a semicolon for the end of a parameter, and so `?a=1;amount=9` for two. */
function queryOf(query: string): Named {
  if (query.includes(";")) throw new Undecidable("The query has a semicolon, at which some targets begin a parameter.");
  return ofPairs(formPairs(query), "The query");
}

function headersOf(headers: Readonly<Record<string, string>>): FactMap {
  const read = new Map<string, FactValue>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (read.has(lower)) throw new Undecidable(`The request has the header "${shown(lower)}" twice.`);
    read.set(lower, value);
  }
  return read;
}

/** JSON as values, a form as texts, null for all else. What a target may read as another kind than it is can't be read. */
function bodyOf(request: RuledRequest): Named {
  const { body } = request;
  const member = bodyMemberOf(request);
  if (body === null || member === null) return NO_BODY;
  const isJson = isJsonMember(member);
  const wanted = member === "form" ? FORM_TYPE : JSON_TYPE;
  const isReadable = isJson || member === "form";
  // Each: targets differ in which of two they take, and in what they take for the name.
  const types = Object.entries(request.headers ?? {}).filter(([name]) => plainHeaderName(name) === "content-type");
  if (types.some(([, type]) => (isReadable ? !wanted.test(type) : READABLE_TYPE.test(type)))) {
    throw new Undecidable(`The body is given as "${member}", and its Content-Type says something else.`);
  }
  if (!isReadable) {
    const sent = sentBody(request) ?? "";
    // Many targets read JSON whatever the Content-Type says.
    if (JSON_BEGINS.test(typeof sent === "string" ? sent : Buffer.from(sent).toString("latin1")))
      throw new Undecidable(`The body is given as "${member}", and looks like JSON.`);
    return NO_BODY;
  }
  if (body.length > RULE_BODY_CHARS_MAX) {
    throw new Undecidable(`The body is longer than ${RULE_BODY_CHARS_MAX} characters.`);
  }
  return isJson ? jsonValue(body) : ofPairs(formPairs(body), "The body");
}

const NO_BODY: Named = { value: null, names: new Map() };

/** In UTF-16 or UTF-32 too, hence the marks and NULs in front. */
const JSON_BEGINS = /^[\s\0\ufeff\xef\xbb\xbf\xfe\xff]*[{[]/;

/** Without a second type behind a comma, or a word of another kind in a parameter. */
const JSON_TYPE = /^\s*[\w.-]+\/([\w.-]+\+)?json\s*(;\s*charset="?[\w-]+"?\s*)?$/i;
const FORM_TYPE = /^\s*application\/x-www-form-urlencoded\s*(;\s*charset="?[\w-]+"?\s*)?$/i;
const READABLE_TYPE = /json|form/i;

function jsonValue(json: string): Named {
  try {
    JSON.parse(json);
  } catch {
    // The row was altered in the database, or is nested so deep that the parser gives up.
    throw new Undecidable("The body can't be read as JSON.");
  }
  const reader = new JsonReader(json);
  return { value: reader.value(), names: reader.names };
}

/** Reads a text that is valid JSON: numbers as they are written, and objects as Maps. A reviver of `JSON.parse` takes five times as long. */
class JsonReader {
  readonly names = new Map<string, string>();
  readonly #json: string;
  #at = 0;

  constructor(json: string) {
    this.#json = json;
  }

  /** The value that begins with this token. */
  value(token = this.#token(), depth = 0): FactValue {
    if (token === "{" || token === "[") {
      if (depth === RULE_BODY_DEPTH_MAX)
        throw new Undecidable(`The body is nested more than ${RULE_BODY_DEPTH_MAX} deep.`);
      return token === "{" ? this.#object(depth + 1) : this.#list(depth + 1);
    }
    if (token.startsWith('"')) return textIn(token);
    if (token === "null") return null;
    return token === "true" || token === "false" ? token === "true" : numberFact(token);
  }

  #list(depth: number): FactValue[] {
    const list: FactValue[] = [];
    for (let token = this.#token(); token !== "]"; token = this.#token()) {
      if (token !== ",") list.push(this.value(token, depth));
    }
    return list;
  }

  #object(depth: number): FactMap {
    const object: FactMap = new Map();
    for (let token = this.#token(); token !== "}"; token = this.#token()) {
      if (token === ",") continue;
      const name = textIn(token);
      if (object.has(name)) throw twice(name, "The body");
      noteMember(name, this.names, "The body");
      // The colon.
      this.#token();
      object.set(name, this.value(this.#token(), depth));
    }
    return object;
  }

  #token(): string {
    const from = skipSpace(this.#json, this.#at);
    this.#at = endOfToken(this.#json, from);
    return this.#json.slice(from, this.#at);
  }
}

function textIn(written: string): string {
  return written.includes("\\") ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** A number as it is written: an integer of 64 bits, or a double that stands for the same decimal. */
export function numberFact(text: string): bigint | number | Unreadable {
  if (INTEGER.test(text)) {
    const value = text.length <= INT64_CHARS_MAX ? BigInt(text) : null;
    if (value !== null && BigInt.asIntN(64, value) === value) return value;
  } else if (isExact(text, Number(text))) return Number(text);
  return unreadable("A number in it has more digits than can be compared.");
}

const INTEGER = /^-?\d+$/;

/** A sign and 19 digits. */
const INT64_CHARS_MAX = 20;

/** A number that a text says as JSON would; targets differ in how they read `1e3`, `0x10`, `1,000` and spaces. */
export const PLAIN_NUMBER = /^-?(0|[1-9]\d{0,30})(\.\d{1,30})?$/;

/** Whether a double prints as the decimal that was written: two texts that differ then are never the same double. */
export function isExact(text: string, value: number): boolean {
  if (text.length <= SHORT_CHARS_MAX && SHORT.test(text)) return true;
  return Number.isFinite(value) && Bun.deepEquals(decimalIn(text), decimalIn(String(value)));
}

/** At most 15 digits, which a double always prints again (C, DBL_DIG). */
const SHORT_CHARS_MAX = 16;
const SHORT = /^-?\d+\.\d+$/;

/** A decimal: its digits without zeros at either end, as a whole number that stands before so many zeros. Equal for equal numbers. */
interface Decimal {
  readonly sign: string;
  readonly digits: string;
  readonly zeros: number;
}

export function decimalIn(text: string): Decimal {
  const [, sign = "", whole = "", part = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  const written = (whole + part).replace(/^0+/, "");
  const digits = written.replace(ZEROS_AT_END, "");
  if (digits === "") return { sign: "", digits, zeros: 0 };
  return { sign, digits, zeros: Number(exponent) - part.length + written.length - digits.length };
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The look-behind keeps a long run of zeros in the middle from being tried at each of them. */
const ZEROS_AT_END = /(?<!0)0+$/;
