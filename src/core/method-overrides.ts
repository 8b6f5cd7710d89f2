import { elementsIn, membersIn } from "./json-values.ts";
import type { ActionRequest } from "./action.ts";
import { usedBodyMember, formPairs, isJsonMember, sentBody } from "./body.ts";
import { OVERRIDE_NAME_CHARS_MAX, OVERRIDES_READ_MAX } from "./limits.ts";

/** A part of a request that names a method, which many targets use instead of the request's own. */
export interface MethodOverride {
  /** In capitals; `OTHER_METHOD` if it is unknown. */
  readonly method: string;
  /** Which part of the request, in words: "header X-Verb". Its name is of letters, digits and the signs of a header's name. */
  readonly place: string;
}

/** The parts of a request that may name another method. */
export type SentRequest = Pick<ActionRequest, "method" | "url" | "headers" | "body" | "extras">;

/** Shown in place of what a requester wrote, which may be anything. */
export const OTHER_METHOD = "an unknown method";

/** The method of a request, and every other method that its target may take it for. */
export function namedMethods(request: SentRequest): readonly string[] {
  return [request.method, ...methodOverrides(request).map(({ method }) => method)];
}

/**
 * Every part of a request that names a method: parameters of the URL, fields of a form or multipart body, members of a JSON
 * object, and headers that the API doesn't refuse anyway. Only at the top level, since no framework looks further down. Linear
 * in the length of the request.
 */
export function methodOverrides(request: SentRequest): readonly MethodOverride[] {
  const found = [
    ...queryPairs(request.url).flatMap(inQuery),
    ...Object.entries(request.headers ?? {}).flatMap(inHeader),
  ];
  for (const [what, pairs] of [
    ["field", bodyFormPairs(request)],
    ["member", memberPairs(request)],
    ["part", requestPairs(request)],
  ] as const) {
    for (const pair of pairs) found.push(...namedIn(pair, what, what === "field" ? "the form" : "the body"));
  }
  return found;
}

type Pair = readonly [name: string, value: string];

/** What a text must contain to be worth a closer look: one of the words, or a code that may hide it. */
const MAY_NAME = /method|verb|%|\\u/i;

/** Some targets separate parameters by semicolons. */
function queryPairs(url: string): readonly Pair[] {
  const [sent = ""] = url.split("#", 1);
  const start = sent.indexOf("?");
  const query = start === -1 ? "" : sent.slice(start + 1);
  return MAY_NAME.test(query) ? formPairs(query.replaceAll(";", "&")) : [];
}

function inQuery(pair: Pair): readonly MethodOverride[] {
  const [name, value] = pair;
  const named = namedIn(pair, "parameter", "the URL");
  if (named.length > 0 || !LOOSE_PARAMETERS.has(plainName(name))) return named;
  return methodsIn(value).map((method) => ({ method, place: `parameter ${shownName(name)} of the URL` }));
}

/** Overrides in a header. Many header names could match, so in most of them only a known method counts. */
function inHeader([name, value]: Pair): readonly MethodOverride[] {
  if (!HEADER.test(name)) return [];
  const methods = methodsIn(value);
  const all = methods.length === 0 && isOverride(name) && value.trim() !== "" ? [OTHER_METHOD] : methods;
  return all.map((method) => ({ method, place: `header ${name}` }));
}

/**
 * The known methods that a value names, alone, in a list, or in quotes: targets take the first, the last or any of them. An
 * item with another word in it, such as "Post NL", names none.
 */
function methodsIn(value: string): readonly string[] {
  const items = value
    .toUpperCase()
    .split(ITEM_ENDS)
    .map((item) => item.split(WORD_ENDS).filter((word) => word !== ""));
  return [...new Set(items.filter((words) => words.every((word) => KNOWN.has(word))).flat())];
}

const ITEM_ENDS = /[,;]/;
const WORD_ENDS = /[\s"'`()[\]{}<>]/;

const HEADER = /method|verb(?!ose)/i;

function bodyFormPairs(request: SentRequest): readonly Pair[] {
  const { body } = request;
  return body !== null && usedBodyMember(request) === "form" && MAY_NAME.test(body) ? formPairs(body) : [];
}

function memberPairs(request: SentRequest): readonly Pair[] {
  const { body } = request;
  const member = usedBodyMember(request);
  if (body === null || member === null || !isJsonMember(member) || !body.startsWith("{") || !MAY_NAME.test(body)) {
    return [];
  }
  try {
    return [...membersIn(body)].filter(([name]) => isOverride(name)).flatMap(valuesIn);
  } catch {
    // The row was altered in the database and is no such JSON any more.
    return [];
  }
}

/** The texts of a value, or of each item of a list, since some targets take the first. Other values count as written. */
function valuesIn([name, json]: Pair): readonly Pair[] {
  // A body has room for a list of a hundred thousand.
  const values = json.startsWith("[") ? [...elementsIn(json).take(OVERRIDES_READ_MAX + 1)] : [json];
  const texts = values
    .slice(0, OVERRIDES_READ_MAX)
    .filter((value) => value !== "null")
    .map((value) => (value.startsWith('"') ? String(JSON.parse(value)) : value));
  if (values.length > OVERRIDES_READ_MAX) texts.push(OTHER_METHOD);
  return [...new Set(texts.map(methodIn))].map((method) => [name, method]);
}

/** The parts of a multipart body. Ignores boundaries, which targets read differently: a part header is enough. */
function* requestPairs(request: SentRequest): Generator<Pair> {
  if (!Object.entries(request.headers ?? {}).some(isMultipart)) return;
  const sent = sentBody(request) ?? "";
  const text = typeof sent === "string" ? sent : Buffer.from(sent).toString("latin1");
  const contents = text.matchAll(CONTENT);
  let content = contents.next();
  let read = 0;
  for (const { index, 0: line } of text.matchAll(DISPOSITION)) {
    if (!PART_MAY_NAME.test(line)) continue;
    read += 1;
    if (read > OVERRIDES_READ_MAX) {
      yield ["_method", OTHER_METHOD];
      return;
    }
    // Both are read once, however many there are.
    while (content.done !== true && content.value.index < index) content = contents.next();
    const name = decodedName(PART_NAME.exec(line)?.[1] ?? "");
    if (isOverride(name) && content.done !== true) yield [name, content.value[1] ?? ""];
  }
}

function isMultipart([name, value]: Pair): boolean {
  return plainHeaderName(name) === "content-type" && /multipart/i.test(value);
}

/** Decodes a name with RFC 8187 codes. */
function decodedName(written: string): string {
  const text = written
    .replace(/^utf-8''/i, "")
    .replaceAll("+", "%2B")
    .replaceAll("&", "%26");
  return new URLSearchParams(`name=${text}`).get("name") ?? "";
}

/** The end of the headers of a part, and the first line of what follows. */
const CONTENT = /\n\r?\n([^\n]*)/g;

/** The header's line and its continuation lines. */
const DISPOSITION = /content-disposition[ \t]*:(?:[^\r\n]|\r?\n[ \t])*/gi;

/** A backslash may stand before any letter of a name in quotes. */
const PART_MAY_NAME = /method|verb|[%\\]/i;

const PART_NAME = /[;\s]name\*?[ \t]*=[ \t]*["']?([^"';\r\n]*(?:''[^"';\r\n]*)?)/i;

function namedIn([name, value]: Pair, what: string, where: string): readonly MethodOverride[] {
  const method = methodIn(value);
  return method === "" || !isOverride(name) ? [] : [{ method, place: `${what} ${shownName(name)} of ${where}` }];
}

/** "" for an empty value, which targets ignore. */
function methodIn(value: string): string {
  const method = value.trim().toUpperCase();
  return method === "" || KNOWN.has(method) ? method : OTHER_METHOD;
}

const KNOWN: ReadonlySet<string> = new Set(
  "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT MERGE PURGE LINK UNLINK".split(" "),
);

/** Whether frameworks take the method from what has this name, in whatever spelling. */
function isOverride(name: string): boolean {
  if (nameToNul(name).length > OVERRIDE_NAME_CHARS_MAX) return false;
  return (MARKED.test(name.trimStart()) ? MARKED_NAMES : PLAIN_NAMES).has(plainName(name));
}

/** PHP reads a dot, a space and a bracket as an underscore. */
const MARKED = /^[_$.[]/;

const MARKED_NAMES: ReadonlySet<string> = new Set(
  "method httpmethod requestmethod methodoverride httpmethodoverride verb httpverb".split(" "),
);

const PLAIN_NAMES: ReadonlySet<string> = new Set(
  `xhttpmethod xhttpmethodoverride xmethodoverride methodoverride httpmethodoverride overridemethod xoverridemethod
  xhttpverb xverboverride xhttpverboverride xtunneledmethod xtunnelledmethod xrestlimethod`.split(/\s+/),
);

/** Names that are also used for other things, so they count only if the value is a method. */
const LOOSE_PARAMETERS: ReadonlySet<string> = new Set(["method", "httpmethod"]);

/** Letters and digits alone. */
function plainName(name: string): string {
  return nameToNul(name)
    .replace(INDEX, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "");
}

/** Some targets leave out spaces in front of a name, and end it at NUL. */
function nameToNul(name: string): string {
  const [read = ""] = name.trimStart().split("\0", 1);
  return read;
}

/** Of a list in a query: `_method[0]`. */
const INDEX = /\[\w{0,20}\]$/;

function shownName(name: string): string {
  return /^[\w$.-]{1,40}$/.test(name) ? name : plainName(name);
}

/** A header's name as a server may read it: some take `X_Real_IP` and `X.Real.IP` for `X-Real-IP`. */
export function plainHeaderName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}
