import type { ActionRequest } from "../core/action.ts";
import { type BodyMember, bodyMemberOf, formPairs, isJsonMember, sentBody, sentBytes } from "../core/body.ts";
import { endOfToken, skipSpace } from "../core/json-walk.ts";
import { RULE_BODY_CHARS_MAX, RULE_BODY_DEPTH_MAX, RULES_STEPS_MAX } from "../core/limits.ts";
import { OTHER_METHOD, plainHeaderName } from "../core/method-overrides.ts";
import { type SentTarget, sentTarget } from "../core/sent-target.ts";
import type { Role } from "../core/roles.ts";
import { maskText } from "../receipts/masking.ts";

/** Why an expression can't be decided: a sentence. */
export class Undecidable extends Error {}

/** The parts of a request that rules read. */
export type RuledRequest = Pick<ActionRequest, "method" | "url" | "headers" | "body" | "title" | "extras">;

export const AMBIGUOUS_PATH =
  "The path has a part that targets read in different ways: %2f, %5c, %2e, %25, a code of a control character or of none, a semicolon or two slashes.";

/** Who calls. A person who creates an action has no key: the texts are empty. */
export interface RuledKey {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  /** Ids of the keys that it replaced, the newest first: a rule about one of these is about it too. */
  readonly replaced?: ReadonlySet<string> | undefined;
}

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
  readonly #request: RuledRequest;
  #target: (() => SentTarget | null) | null = null;
  #lowerPath: string | null = null;
  #bytes: number | null = null;
  #query: (() => Named) | null = null;
  #headers: (() => FactMap) | null = null;
  #body: (() => Named) | null = null;
  /** Of the expression that is checked now. */
  names: MemberNames = [];
  /** Of the expression for which their names were compared with its own last. */
  #queryFor: MemberNames | null = null;
  #bodyFor: MemberNames | null = null;
  /** What expressions may still cost for this request. */
  stepsLeft = RULES_STEPS_MAX;
  /** The one that the request counts as now: of a request that names others, each in turn. */
  countsAs: string;

  constructor(request: RuledRequest) {
    this.#request = request;
    this.countsAs = request.method;
    this.title = request.title ?? "";
  }

  /** Null: the URL was altered in the database. */
  get target(): SentTarget | null {
    this.#target ??= once(() => sentTarget(this.#request.url));
    return this.#target();
  }

  /** Of a URL that can be read. */
  get lowerPath(): string {
    this.#lowerPath ??= this.#sent.path.toLowerCase();
    return this.#lowerPath;
  }

  get #sent(): SentTarget {
    if (this.target === null) throw new Undecidable("Its URL can't be read.");
    return this.target;
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
    this.#query ??= once(() => queryOf(this.#sent.query));
    const query = this.#query();
    if (this.#queryFor !== this.names) checkNames(query, this.names, "The query");
    this.#queryFor = this.names;
    return query.value;
  }

  get headers(): FactMap {
    this.#headers ??= once(() => headersOf(this.#request.headers ?? {}));
    return this.#headers();
  }

  get body(): FactValue {
    this.#body ??= once(() => bodyOf(this.#request));
    const body = this.#body();
    if (this.#bodyFor !== this.names) checkNames(body, this.names, "The body");
    this.#bodyFor = this.names;
    return body.value;
  }

  get bodyBytes(): number {
    this.#bytes ??= sentBytes(this.#request);
    return this.#bytes;
  }

  /** The name of the credential that it is made with; empty: none. */
  get credential(): string {
    return this.#request.extras.credential?.name ?? "";
  }

  get metadata(): FactMap {
    return new Map(Object.entries(this.#request.extras.metadata ?? {}));
  }
}

/** `key` of expressions. */
export class KeyFacts {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** The key's own and those of the keys that it replaced, the newest first. No part of expressions. */
  readonly ids: ReadonlySet<string>;

  constructor(key: RuledKey | null) {
    this.ids = key === null ? NO_IDS : new Set([key.id]).union(key.replaced ?? NO_IDS);
    this.id = key?.id ?? "";
    this.name = key?.name ?? "";
    this.role = key?.role ?? "";
  }
}

const NO_IDS: ReadonlySet<string> = new Set();

/** What rules know of a request. */
export interface CallFacts {
  readonly request: RuledRequest;
  readonly action: ActionFacts;
  readonly key: KeyFacts;
  readonly now: Date;
}

/** What rules know of a request. Nothing is parsed before a rule reads it. */
export function factsOf(request: RuledRequest, key: RuledKey | null, now: Date): CallFacts {
  return { request, action: new ActionFacts(request), key: new KeyFacts(key), now };
}

/** A name as targets that ignore case compare it: Go reads `ſ` as `s` and the sign of Kelvin as `k`. */
export function foldName(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : name.normalize("NFKC").toUpperCase().toLowerCase();
}

const ASCII = /^[ -~]*$/;

/** A value, and the names in it by their folded form. */
interface Named {
  readonly value: FactValue;
  readonly names: ReadonlyMap<string, string>;
}

/** What `make` gives or throws, made once. */
export function once<Value>(make: () => Value): () => Value {
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

/** A target that ignores case would read `Amount` as the `amount` of the expression: throws then. */
function checkNames({ names }: Named, read: MemberNames, what: string): void {
  for (const [folded, name] of read) {
    const given = names.get(folded);
    if (given !== undefined && given !== name) {
      const isCase = foldName(given) === folded;
      const why = isCase ? `differs from "${shown(name)}" only by case` : `some targets read as "${shown(name)}"`;
      throw new Undecidable(`${what} has "${shown(given)}", which ${why}.`);
    }
  }
}

/** A name that a requester wrote, for sentences that are stored and told to all: a secret may stand in its place. */
export function shown(name: string): string {
  const masked = maskText(name.slice(0, NAME_CHARS_MAX), "public");
  return masked.length > 40 ? `${masked.slice(0, 40)}…` : masked;
}

/** Throws where two names are equal but for case, or as some targets read them: of those, they take either. */
function noteMember(name: string, names: Map<string, string>, what: string, readAs = name): void {
  const folded = foldName(readAs);
  const known = names.get(folded);
  if (known !== undefined && known !== name) {
    const differ = foldName(known) === foldName(name) ? "differ only by case" : "some targets read as the same";
    throw new Undecidable(`${what} has the names "${shown(known)}" and "${shown(name)}", which ${differ}.`);
  }
  names.set(folded, name);
}

const NAME_CHARS_MAX = 1_000;

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
  if (body === null || member === null) return { value: null, names: new Map() };
  const wanted = wantedType(member);
  const types = Object.entries(request.headers ?? {}).filter(([name]) => plainHeaderName(name) === "content-type");
  // Each: targets differ in which of two they take, and in what they take for the name.
  if (types.some(([, type]) => (wanted === null ? READABLE_TYPE.test(type) : !wanted.test(type)))) {
    throw new Undecidable(`The body is given as "${member}", and its Content-Type says something else.`);
  }
  if (wanted === null) {
    if (looksLikeJson(sentBody(request) ?? ""))
      throw new Undecidable(`The body is given as "${member}", and looks like JSON.`);
    return { value: null, names: new Map() };
  }
  if (body.length > RULE_BODY_CHARS_MAX) {
    throw new Undecidable(`The body is longer than ${RULE_BODY_CHARS_MAX} characters.`);
  }
  return wanted === FORM_TYPE ? ofPairs(formPairs(body), "The body") : jsonValue(body);
}

/** Many targets read JSON whatever the Content-Type says. In UTF-16 or UTF-32 too, hence the marks and NULs in front. */
function looksLikeJson(body: string | Uint8Array): boolean {
  const text =
    typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  return JSON_BEGINS.test(text);
}

const JSON_BEGINS = /^[\s\0\ufeff\xef\xbb\xbf\xfe\xff]*[{[]/;

function wantedType(member: BodyMember): RegExp | null {
  if (isJsonMember(member)) return JSON_TYPE;
  return member === "form" ? FORM_TYPE : null;
}

/** Without a second type behind a comma, or a word of another kind in a parameter. */
const JSON_TYPE = /^\s*[\w.-]+\/([\w.-]+\+)?json\s*(;\s*charset="?[\w-]+"?\s*)?$/i;
const FORM_TYPE = /^\s*application\/x-www-form-urlencoded\s*(;\s*charset="?[\w-]+"?\s*)?$/i;
const READABLE_TYPE = /json|form/i;

/** JSON with numbers as they are written, and objects as Maps. A reviver of `JSON.parse` takes five times as long. */
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

/** Reads a text that is valid JSON. */
class JsonReader {
  readonly names = new Map<string, string>();
  readonly #json: string;
  readonly #seen = new Set<string>();
  #at = 0;

  constructor(json: string) {
    this.#json = json;
  }

  value(): FactValue {
    return this.#value(0);
  }

  #value(depth: number): FactValue {
    const first = this.#next();
    if (first === "{" || first === "[") {
      if (depth === RULE_BODY_DEPTH_MAX)
        throw new Undecidable(`The body is nested more than ${RULE_BODY_DEPTH_MAX} deep.`);
      return first === "{" ? this.#object(depth + 1) : this.#list(depth + 1);
    }
    if (first === '"') return this.#text();
    const token = this.#token();
    if (token === "null") return null;
    return token === "true" || token === "false" ? token === "true" : numberFact(token);
  }

  /** Skips white space. */
  #next(): string | undefined {
    this.#at = skipSpace(this.#json, this.#at);
    return this.#json[this.#at];
  }

  #token(): string {
    const from = this.#at;
    this.#at = endOfToken(this.#json, from);
    return this.#json.slice(from, this.#at);
  }

  #text(): string {
    const written = this.#token();
    return written.includes("\\") ? String(JSON.parse(written)) : written.slice(1, -1);
  }

  #list(depth: number): FactValue[] {
    const list: FactValue[] = [];
    for (let end = this.#step(); end !== "]"; end = this.#end()) list.push(this.#value(depth));
    return list;
  }

  #object(depth: number): FactMap {
    const object: FactMap = new Map();
    for (let end = this.#step(); end !== "}"; end = this.#end()) {
      this.#next();
      const name = this.#text();
      if (object.has(name)) throw twice(name, "The body");
      if (!this.#seen.has(name)) {
        this.#seen.add(name);
        noteMember(name, this.names, "The body");
      }
      this.#next();
      // The colon.
      this.#at += 1;
      object.set(name, this.#value(depth));
    }
    return object;
  }

  /** Past the opening bracket. The closing bracket, if it follows, is read. */
  #step(): string | undefined {
    this.#at += 1;
    const next = this.#next();
    if (next === "]" || next === "}") this.#at += 1;
    return next;
  }

  /** Past a comma or the closing bracket. */
  #end(): string | undefined {
    const sign = this.#next();
    this.#at += 1;
    return sign;
  }
}

/** A number as it is written: an integer of 64 bits, or a double that stands for the same decimal. */
export function numberFact(text: string): bigint | number | Unreadable {
  if (INTEGER.test(text)) {
    if (text.length <= INT64_CHARS_MAX) {
      const value = BigInt(text);
      if (BigInt.asIntN(64, value) === value) return value;
    }
    return unreadable("A number in it has more digits than can be compared.");
  }
  const value = Number(text);
  return isExact(text, value) ? value : unreadable("A number in it has more digits than can be compared.");
}

const INTEGER = /^-?\d+$/;

/** A sign and 19 digits. */
const INT64_CHARS_MAX = 20;

/** Whether a double prints as the decimal that was written: two texts that differ then are never the same double. */
export function isExact(text: string, value: number): boolean {
  if (text.length <= SHORT_CHARS_MAX && SHORT.test(text)) return true;
  return Number.isFinite(value) && decimalOf(text) === decimalOf(String(value));
}

/** At most 15 digits, which a double always prints again (C, DBL_DIG). */
const SHORT_CHARS_MAX = 16;
const SHORT = /^-?\d+\.\d+$/;

/** Digits without zeros at either end, and their exponent: equal for equal numbers. */
function decimalOf(text: string): string {
  const [, sign = "", whole = "", part = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const plain = digits.replace(ZEROS_AT_END, "");
  if (plain === "") return "0";
  return `${sign}${plain}e${Number(exponent) - part.length + digits.length - plain.length}`;
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The look-behind keeps a long run of zeros in the middle from being tried at each of them. */
const ZEROS_AT_END = /(?<!0)0+$/;
