import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { answering } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openRealServer } from "./real-server.ts";
import { SEED } from "../support/long.ts";
import { shared } from "../support/shared.ts";

/** Bodies beyond it are read in another way: the value is not made. */
const LARGE = 140_000;

const sender = answering(answered(200));
const app = await shared(openRealServer({ sender }));

/** Sends a create with this body, written like this, and gives back what the target got and what a reader gets. */
async function through(body: string) {
  const before = sender.sent.length;
  const create = ` { "url" : "http://127.0.0.1:9/" ,"body":${body}, "sync":true}`;
  const headers = { "content-type": "application/json" };
  const made = (await (await app.ask("/v1/actions", { method: "POST", body: create, headers })).json()) as {
    id: string;
  };
  const read = await (await app.ask(`/v1/actions/${made.id}`)).text();
  return { sent: sender.sent.slice(before).map((request) => request.body ?? ""), read };
}

/** What of a JSON text has to come through: signs as they are, numbers as spelled, strings and names as values. */
function parts(text: string): readonly string[] {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[^\s"]/g) ?? [];
  return tokens.map((token) => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token));
}

const space = fc.constantFrom("", "", " ", "\n\t", "  ");

const words = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toJSON",
    "",
    "\ud800",
    '"',
    "\\",
    "\0",
    "a/b",
    "url",
    "body",
  ),
);

/** A string in one of the ways in which it may be written. */
const quoted = fc.tuple(words, fc.boolean()).map(([word, isEscaped]) => {
  if (!isEscaped) return JSON.stringify(word);
  return `"${Array.from({ length: word.length }, (_, at) => `\\u${word.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`;
});

const number = fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/);

const { value } = fc.letrec<{ value: string }>((tie) => {
  const list = fc
    .tuple(fc.array(tie("value"), { maxLength: 4 }), space)
    .map(([items, gap]) => `[${items.join(`${gap},${gap}`)}]`);
  // Whole numbers as names are put first by every engine; all other names keep their place.
  const members = fc.uniqueArray(fc.tuple(quoted, tie("value")), {
    maxLength: 4,
    selector: ([name]): string => String(JSON.parse(name)),
  });
  const object = fc.tuple(members, space).map(([pairs, gap]) => {
    const named = pairs.filter(([name]) => !/^"\d+"$/.test(JSON.stringify(JSON.parse(name))));
    return `{${gap}${named.map(([name, item]) => `${name}${gap}:${gap}${item}`).join(`,${gap}`)}}`;
  });
  const scalar = fc.oneof(number, quoted, fc.constantFrom("null", "true", "false"));
  return { value: fc.oneof({ maxDepth: 4 }, scalar, list, object) };
});

test("the target gets the members, values, strings and numbers that were written, and a reader reads them", async () => {
  const property = fc.asyncProperty(value, fc.nat({ max: 30 }), async (item, size) => {
    const filler = size === 0 ? `,"z":[${"[ ],".repeat(LARGE / 4)}1]` : "";
    const body = `{"a":${item}${filler}}`;
    const { sent, read } = await through(body);
    const texts = sent.map(String);
    expect(texts.map((text) => parts(text))).toEqual([parts(body)]);
    expect(read).toContain(`"body":${texts[0]}`);
  });
  await fc.assert(property, { seed: SEED, numRuns: 60 });
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
});

test("B107 names with a meaning are data like any other, whichever way the body is read", async () => {
  const members = `"__proto__":{"polluted":1,"url":"x"},"constructor":{"prototype":{"polluted":1.0}},"nothing":null`;
  for (const filler of ["", `,"one":1.0`, `,"z":[${"{},".repeat(LARGE / 3)}1]`]) {
    const body = `{${members}${filler}}`;
    const { sent, read } = await through(body);
    expect(sent).toEqual([body]);
    expect(read).toContain(`"body":${body}`);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
    expect(Reflect.get(Object, "polluted")).toBeUndefined();
  }
});

test("of a name given twice the last one counts, and the target is told nothing of the first", async () => {
  for (const filler of ["", `,"one":1.0`, `,"z":[${"{},".repeat(LARGE / 3)}1]`]) {
    const { sent } = await through(`{"a":{"secret":1},"a":2,"\\u0061":3${filler}}`);
    expect(sent).toEqual([`{"a":3${filler}}`]);
  }
  // Of ours too, and of `body` itself.
  const text = `{"url":"nonsense","body":{"a":1},"approve":false,"url":"http://127.0.0.1:9/","body":{"b":2},"approve":true}`;
  const { json, text: shown } = await app.call("POST", "/v1/actions", text);
  expect(json.status).toBe("awaiting_approval");
  expect(shown).toContain(`"body":{"b":2}`);
});
