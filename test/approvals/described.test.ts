import { describe, expect, test } from "bun:test";
import type { Action } from "../../src/core/action.ts";
import { encodeForm } from "../../src/core/body.ts";
import { maskedFacts, NO_HISTORY } from "../../src/approvals/facts.ts";
import { requestDigests } from "../../src/core/rejections.ts";
import { findRisks } from "../../src/approvals/risks.ts";
import { anAction } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const factsOf = (action: Partial<Action>) =>
  maskedFacts(maskAction(anAction(action), "decider"), NO_HISTORY, "").facts.map(({ name, value }) => [name, value]);

const bodyFact = (action: Partial<Action>) => factsOf(action).find(([name]) => name === "body")?.[1];

const form = (pairs: Readonly<Record<string, string>>): Partial<Action> => ({
  body: encodeForm(Object.entries(pairs)),
  extras: { bodyKind: "form" },
});

const text = (body: string): Partial<Action> => ({ body, extras: { bodyKind: "text" } });

const bytes = (body: string): Partial<Action> => ({
  body: Buffer.from(body).toString("base64"),
  extras: { bodyKind: "base64" },
});

describe("what an approver is told", () => {
  test("has the requester's words where they were given, each for itself", () => {
    const metadata = { order: "7", note: "line\nMethod: GET" };
    const facts = factsOf({ title: "Pay Ann", extras: { metadata } });
    expect(facts.filter(([name]) => name === "title" || name === "metadata")).toEqual([
      ["title", "Pay Ann"],
      ["metadata", "order: 7"],
      ["metadata", "note: line\nMethod: GET"],
    ]);
    expect(factsOf({}).map(([name]) => name)).not.toContain("title");
  });

  test("says that an unknown outcome stops it, where that is so", () => {
    expect(factsOf({ onUnknown: "stop" }).filter(([name]) => name === "on_unknown")).toEqual([
      ["on_unknown", "Ends as failed: it is never sent again by itself"],
    ]);
    expect(factsOf({ onUnknown: "retry" }).map(([name]) => name)).not.toContain("on_unknown");
  });

  test("says what kind of body it is, and how large", () => {
    expect(bodyFact({ body: '{"a":1}' })).toBe("JSON, 7 bytes");
    expect(bodyFact({ body: "[1]", extras: { bodyKind: "json" } })).toBe("JSON, 3 bytes");
    expect(bodyFact(form({ a: "1", b: "ä" }))).toBe("Form, 2 fields, 12 bytes");
    expect(bodyFact(text("grün"))).toBe("Text, 5 bytes, text/plain; charset=utf-8");
    expect(bodyFact({ ...bytes("abc"), headers: { "content-type": "image/png" } })).toBe("Bytes, 3 bytes, image/png");
    expect(bodyFact({ body: null })).toBe("None");
  });
});

describe("risks of a body", () => {
  const risks = (action: Partial<Action>) => {
    const request = anAction(action);
    return findRisks({ ...request, ...NO_HISTORY, seenUrl: request.url }).map(({ name }) => name);
  };

  test.each([
    ["a form", form({ a: "pay\u202eann" })],
    ["a name of a form", form({ "a\u200bb": "x" })],
    ["a text", text("pay\u202eann")],
    ["a text that is JSON to its target", text('{"to":"a\\u202eb"}')],
    ["bytes that are text", bytes("pay\u202eann")],
    ["a title", { title: "pay\u202eann" }],
    ["metadata", { extras: { metadata: { a: "\u200b" } } }],
  ])("characters that can't be seen are found in %s", (_, action) => {
    expect(risks(action)).toEqual(["hidden_characters"]);
  });

  test("letters that can pass for others are found in a form", () => {
    expect(risks(form({ to: "p\u0430ypal" }))).toEqual(["mixed_scripts"]);
  });

  test("a form may name another method", () => {
    expect(risks(form({ _method: "Delete" }))).toEqual(["deletes"]);
    expect(risks(form({ _method: "put" }))).toEqual(["other_method"]);
    expect(risks(form({ method: "delete" }))).toEqual([]);
  });

  test("the size is that of the bytes that are sent", () => {
    expect(risks(bytes("x".repeat(60_000)))).toEqual([]);
    expect(risks(bytes("x".repeat(70_000)))).toEqual(["size"]);
  });

  test("lines are no hidden characters", () => {
    expect(risks(text("a\r\nb\tc"))).toEqual([]);
    expect(risks(form({ a: "one\r\ntwo" }))).toEqual([]);
  });
});

describe("the same request, for the count of rejections", () => {
  const digestOf = (action: Partial<Action>) => requestDigests(anAction(action), (written) => written).digest;
  const json = (body: string): Partial<Action> => ({ body, extras: { bodyKind: "json" } });

  test.each([
    ["an object as json", { body: '{"a":[1],"b":2,"c":null}' }, json('{"c":null,"b":2.0,"a":[1]}')],
    ["fields in another order", form({ a: "1", b: "2" }), form({ b: "2", a: "1" })],
    ["a text as base64", text("a=ä"), bytes("a=ä")],
    [
      "its address in another spelling",
      { url: "http://127.0.0.1:90/pay" },
      { url: "HTTP://0x7f.1.:090/x/%2e%2E/p%61y#a" },
    ],
    ["other headers and attempts", text("a"), { ...text("a"), headers: { "X-Try": "1" }, retries: 7, dedupe: "x" }],
    [
      "other words",
      text("a"),
      { ...text("a"), title: "x", extras: { bodyKind: "text" as const, metadata: { a: "b" } } },
    ],
  ])("is known again: %s", (_, one, other) => {
    expect(digestOf(one)).toBe(digestOf(other));
  });

  test("is another one with another body", () => {
    const bodies = [
      { body: null },
      json("null"),
      json('""'),
      form({}),
      form({ a: "1" }),
      text(""),
      text("a=1"),
      json('["a"]'),
      json('{"0":"a"}'),
      json('["form",["a","1"]]'),
      json('["bytes","YT0x"]'),
    ];
    expect(new Set(bodies.map(digestOf)).size).toBe(bodies.length);
  });
});

describe("similar requests, for the count of rejections", () => {
  const digestOf = (method: Action["method"], url: string) =>
    requestDigests(anAction({ method, url }), (written) => written).similar;
  const one = digestOf("POST", "https://api.example.com/v1/orders/17/refunds?to=ann");

  test.each([
    "https://api.example.com/v1/orders/17/refunds",
    "https://api.example.com/v1/orders/17/refunds?to=ann&unused=1#part",
    "https://API.example.com.:443/v2/orders/ch_9x/%72efunds/",
    "https://api.example.com/v1//orders/17;a=1/Refunds",
  ])("are those with the same method, host and path but for ids: %s", (url) => {
    expect(digestOf("POST", url)).toBe(one);
  });

  test("are not those with another method, host or path", () => {
    const others = [
      digestOf("PUT", "https://api.example.com/v1/orders/17/refunds"),
      digestOf("POST", "https://eu.example.com/v1/orders/17/refunds"),
      digestOf("POST", "https://api.example.com:8443/v1/orders/17/refunds"),
      digestOf("POST", "https://api.example.com/v1/orders/refunds"),
      digestOf("POST", "https://api.example.com/v1/orders/17/refunds/18"),
      digestOf("POST", "https://api.example.com/v1/customers/17/refunds"),
    ];
    expect(new Set([one, ...others]).size).toBe(others.length + 1);
  });
});
