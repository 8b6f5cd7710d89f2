import { type ActionRequest, firstDueAt } from "../core/action.ts";
import { usedBodyMember, formPairs, isJsonMember, sentBody, sentBytes } from "../core/body.ts";
import { exactNumber } from "../core/decimal.ts";
import { foldName, type JsonValue, otherNames, readJsonValue, wholeName } from "../core/json-values.ts";
import { RULE_BODY_CHARS_MAX, RULE_BODY_DEPTH_MAX, RULES_STEPS_MAX } from "../core/limits.ts";
import type { Requester } from "../core/judge.ts";
import { OTHER_METHOD, plainHeaderName } from "../core/method-overrides.ts";
import { sentTarget } from "../core/target.ts";
import { maskText } from "../receipts/masking.ts";
import { jsonIn } from "../core/json.ts";

/** Thrown if a condition can't be decided. The message says why, as a sentence. */
export class Undecidable extends Error {}

/** The parts of a request that rules read. */
export type RuledRequest = Pick<ActionRequest, "method" | "url" | "headers" | "body" | "title" | "extras">;

export const AMBIGUOUS_PATH =
  "The path has a part that targets read in different ways: %2f, %5c, %2e, %25, %3f, %23, a code of a control character or of none, a semicolon or two slashes.";

export type FactValue = JsonValue<bigint | number | typeof INEXACT>;
type FactMap = Map<string, FactValue>;

/** A number with too many digits to compare. It throws when cel-js reads it, which looks at the `constructor` of each value. */
export const INEXACT = {
  get constructor(): never {
    throw new Undecidable("A number in it has more digits than can be compared.");
  },
};

/** The names that an expression reads, each after its folded form. Names in the request are compared with them. */
export type MemberNames = readonly (readonly [folded: string, name: string])[];

/** `action` in expressions. Each part is read when a rule first needs it, once for all rules of a request. */
export class ActionFacts {
  /** The method that the request counts as now. If its headers name other methods, each of them in turn. */
  countsAs: string;
  /** How many steps expressions may still take for this request. */
  stepsLeft = RULES_STEPS_MAX;
  /** The names that the expression being evaluated reads. */
  names: MemberNames = [];
  readonly title: string;
  readonly #request: RuledRequest;
  readonly target = lazily(() => sentTarget(this.#request.url));
  readonly foldedPath = lazily(() => foldPath(this.target().path));
  /** The folded path without what many frameworks ignore: `.json`, a dot, blanks or a slash at its end, and a front script. */
  readonly barePath = lazily(() => withoutEnding(this.foldedPath().replace(FRONT_SCRIPT, "")));
  readonly bodyBytes = lazily(() => sentBytes(this.#request));
  /** Throws `Undecidable` if targets may read the body as another kind than it was given as. */
  readonly checkBodyKind = lazily(() => checkBodyKind(this.#request));
  /** Path and body without their ids, which a loop often changes each time. Includes paths that targets read in different ways. */
  readonly repeated = lazily(() => [this.target().path, this.#request.body ?? ""].map(withoutIds));
  readonly #query = lazily(() => queryFacts(this.target().query));
  readonly #headers = lazily(() => headerFacts(this.#request.headers ?? {}));
  readonly #body = lazily(() => bodyFacts(this.#request));

  constructor(request: RuledRequest) {
    this.#request = request;
    this.countsAs = request.method;
    this.title = request.title ?? "";
  }

  get method(): string {
    if (this.countsAs !== OTHER_METHOD) return this.countsAs;
    throw new Undecidable("The request names a method that is not known.");
  }

  get host(): string {
    return this.target().host;
  }

  get path(): string {
    const { path, isAmbiguous } = this.target();
    if (isAmbiguous) throw new Undecidable(AMBIGUOUS_PATH);
    return path;
  }

  get query(): FactValue {
    return this.#query().valueFor(this.names);
  }

  get headers(): FactValue {
    return this.#headers().valueFor(this.names);
  }

  get body(): FactValue {
    return this.#body().valueFor(this.names);
  }

  /** The name of the credential that the call uses; empty: none. */
  get credential(): string {
    return this.#request.extras.credential?.name ?? "";
  }

  get metadata(): FactMap {
    return new Map(Object.entries(this.#request.extras.metadata ?? {}));
  }
}

/**
 * `key` in expressions. The texts are empty if a person created the action, who has no key. The agent at the standard input of this
 * process has none either, but a name and a role, so that rules about agents apply to it.
 */
export class KeyFacts {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** The id of the key and of those that it replaced, newest first: rules about these apply to it, too. Not in expressions. */
  readonly ids: ReadonlySet<string>;

  constructor({ keyId, keyName, role, replaced = NO_IDS }: RuledKey) {
    this.id = keyId ?? "";
    const isPerson = keyId === null && role !== "agent";
    this.name = isPerson ? "" : keyName;
    this.role = isPerson ? "" : role;
    this.ids = keyId === null ? NO_IDS : new Set([keyId]).union(replaced);
  }
}

/**
 * A path as targets that ignore case compare it. Decoding adds no slash, since paths with an encoded slash are ambiguous. A segment
 * that is no UTF-8 stays encoded, but must not keep those before it so.
 */
export function foldPath(path: string): string {
  return path.split("/").map(foldSegment).join("/");
}

function foldSegment(segment: string): string {
  try {
    return foldName(decodeURIComponent(segment));
  } catch {
    return segment.toLowerCase();
  }
}

/** For `/index.php/pay`, PHP servers call `/index.php`, and PHP frameworks read the path as `/pay`. */
const FRONT_SCRIPT = /\/[^/]+\.php(?=\/)/;

/** Removes the ending of the last segment only: elsewhere a dot is part of the name, as in `/v1.0/users`. */
function withoutEnding(path: string): string {
  const start = path.lastIndexOf("/", path.length - 2) + 1;
  const dot = path.indexOf(".", start + 1);
  const bare = (dot === -1 ? path : path.slice(0, dot)).trimEnd();
  return bare.endsWith("/") ? bare.slice(0, -1).trimEnd() : bare;
}

export function withoutIds(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{6,}/gi, "#");
}

export type RuledKey = Omit<Requester, "accountId">;

const NO_IDS: ReadonlySet<string> = new Set();

/** What rules know about a request. */
export interface CallFacts {
  readonly request: RuledRequest;
  readonly action: ActionFacts;
  readonly key: KeyFacts;
  readonly now: Date;
  /** When it can be sent. A delayed call counts at that time. */
  readonly due: Date;
}

/** Gathers the facts of a request. Nothing is parsed before a rule reads it. */
export function requestFacts(
  request: RuledRequest,
  key: RuledKey,
  now: Date,
  due: Date = firstDueAt(request, now),
): CallFacts {
  return { request, action: new ActionFacts(request), key: new KeyFacts(key), now, due };
}

/** Calls `make` at the first use, and returns or throws the same from then on. */
export function lazily<Value>(make: () => Value): () => Value {
  let get = (): Value => {
    try {
      const value = make();
      get = () => value;
    } catch (error) {
      get = () => {
        throw error;
      };
    }
    return get();
  };
  return () => get();
}

/** A query, headers or a body, with the names in it. If targets may read two names as one, it is unknown which one they take. */
class Named {
  readonly #what: string;
  /** Names as they are written, by themselves and by their folded form. */
  readonly #names = new Map<string, string>();
  /** Names such as `amount[0]`, by the folded name of the whole, `amount`. */
  readonly #parts = new Map<string, string>();
  /** The names of the last call of `valueFor`. */
  #comparedWith: MemberNames = [];
  value: FactValue = null;

  constructor(what: string) {
    this.#what = what;
  }

  /** The value for an expression. Throws if it has `Amount` where the expression reads `amount`: some targets ignore case. */
  valueFor(read: MemberNames): FactValue {
    if (this.#comparedWith === read) return this.value;
    for (const [folded, name] of read) {
      const given = this.#parts.get(folded) ?? this.#names.get(folded);
      if (given === undefined || given === name) continue;
      const isCase = foldName(given) === folded;
      const why = isCase ? `differs from "${shown(name)}" only by case` : `some targets read as "${shown(name)}"`;
      throw new Undecidable(`${this.#what} has "${shown(given)}", which ${why}.`);
    }
    this.#comparedWith = read;
    return this.value;
  }

  /** Notes a name, or what some targets read it as. Throws if another name is noted as the same. */
  add(name: string, isTwice: boolean, readAs = name): void {
    if (isTwice) throw new Undecidable(`${this.#what} has the name "${shown(name)}" twice.`);
    // The quick way out: the objects of a list have the same names many times.
    if (this.#names.get(readAs) === name) return;
    const folded = foldName(readAs);
    const known = this.#names.get(folded);
    if (known !== undefined && known !== name) {
      const differ = foldName(known) === foldName(name) ? "differ only by case" : "some targets read as the same";
      throw new Undecidable(`${this.#what} has the names "${shown(known)}" and "${shown(name)}", which ${differ}.`);
    }
    this.#names.set(folded, name).set(readAs, name);
  }

  addPairs(pairs: readonly (readonly [name: string, value: string])[], findOthers = otherNames): this {
    const value: FactMap = new Map();
    for (const [name, text] of pairs) {
      this.add(name, value.has(name));
      value.set(name, text);
    }
    for (const name of value.keys()) {
      const others = findOthers(name);
      for (const other of others) this.add(name, false, other);
      for (const readAs of [name, ...others]) {
        const whole = wholeName(readAs);
        if (whole !== null) this.#parts.set(foldName(whole), name);
      }
    }
    this.value = value;
    return this;
  }
}

/** A requester's name for something, masked, since it may contain a secret and the sentence is shown to everybody. */
export function shown(name: string): string {
  const masked = maskText(name.slice(0, NAME_CHARS_MAX), "public");
  return masked.length > 40 ? `${masked.slice(0, 40)}…` : masked;
}

const NAME_CHARS_MAX = 1_000;

/** Some targets end a parameter at a semicolon, and so read `?a=1;amount=9` as two parameters. */
function queryFacts(query: string): Named {
  if (query.includes(";")) throw new Undecidable("The query has a semicolon, at which some targets begin a parameter.");
  return new Named("The query").addPairs(formPairs(query));
}

/** Headers by their names in lower case. */
function headerFacts(headers: Readonly<Record<string, string>>): Named {
  const pairs = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return new Named("The head of the request").addPairs(pairs, (name) => [plainHeaderName(name)]);
}

function checkBodyKind(request: RuledRequest): void {
  const member = usedBodyMember(request);
  if (member === null) return;
  const isReadable = member === "form" || isJsonMember(member);
  const wanted = member === "form" ? FORM_TYPE : JSON_TYPE;
  // Check every match: of two headers, targets differ in which they take, and in which names they take as Content-Type.
  const types = Object.entries(request.headers ?? {}).filter(([name]) => plainHeaderName(name) === "content-type");
  if (types.some(([, type]) => (isReadable ? !wanted.test(type) : READABLE_TYPE.test(type)))) {
    throw new Undecidable(`The body is given as "${member}", and its Content-Type says something else.`);
  }
  const sent = isReadable ? "" : (sentBody(request) ?? "");
  // Many targets read JSON whatever the Content-Type says.
  if (JSON_BEGINS.test(typeof sent === "string" ? sent : Buffer.from(sent).toString("latin1")))
    throw new Undecidable(`The body is given as "${member}", and looks like JSON.`);
}

/** JSON as values, a form as texts, anything else as null. */
function bodyFacts(request: RuledRequest): Named {
  checkBodyKind(request);
  const { body } = request;
  const named = new Named("The body");
  const member = usedBodyMember(request);
  if (body === null || member === null || !(member === "form" || isJsonMember(member))) return named;
  if (body.length > RULE_BODY_CHARS_MAX) {
    throw new Undecidable(`The body is longer than ${RULE_BODY_CHARS_MAX} characters.`);
  }
  if (member === "form") return named.addPairs(formPairs(body));
  // Nested too deep for the parser.
  if (jsonIn(body) === undefined) throw new Undecidable("The body can't be read as JSON.");
  named.value = readJsonValue(body, {
    number: (text) => exactNumber(text) ?? INEXACT,
    // Parsers in C end a name at NUL.
    name: (name, isTwice) => named.add(name, isTwice, name.split("\0", 1)[0]),
    depth(depth) {
      if (depth > RULE_BODY_DEPTH_MAX)
        throw new Undecidable(`The body is nested more than ${RULE_BODY_DEPTH_MAX} deep.`);
    },
  });
  return named;
}

/** Allows byte order marks and NULs in front, so that it finds JSON in UTF-16 and UTF-32, too. */
const JSON_BEGINS = /^[\s\0\ufeff\xef\xbb\xbf\xfe\xff]*[{[]/;

/**
 * One type, without a second one after a comma or other parameters. Only these charsets: in UTF-7 or EBCDIC, which some targets
 * understand, the same bytes mean something else.
 */
const JSON_TYPE = /^\s*[\w.-]+\/([\w.-]+\+)?json\s*(;\s*charset="?(utf-?8|us-ascii)"?\s*)?$/i;
const FORM_TYPE = /^\s*application\/x-www-form-urlencoded\s*(;\s*charset="?(utf-?8|us-ascii)"?\s*)?$/i;
const READABLE_TYPE = /json|form/i;
