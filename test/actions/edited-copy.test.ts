import { describe, expect, test } from "bun:test";
import { METADATA_NAMES_MAX } from "../../src/core/limits.ts";
import type { Action } from "../../src/core/action.ts";
import { metadataOfCopy, editedCopy, type EditedFields, fieldsToEdit } from "../../src/actions/edited-copy.ts";
import { maskFor } from "../../src/receipts/mask-rules.ts";
import { anAction } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const SECRET = "x9Kq2Lm8Vb3Zt7RwP4nD";

const SECRETIVE: Partial<Action> = {
  url: `https://api.example.com/orders?token=${SECRET}`,
  headers: { Authorization: `Bearer ${SECRET}`, "Idempotency-Key": "k", "X-Plan": "gold" },
  body: `{"n":1.0,"password":"${SECRET}","note":"a"}`,
};

function edit(action: Action, change: (shown: EditedFields) => Partial<EditedFields> = () => ({})) {
  const shown = fieldsToEdit(action);
  return editedCopy(maskAction(action, "decider"), { ...shown, ...change(shown) });
}

const problemsOf = (edited: ReturnType<typeof editedCopy>) =>
  "problems" in edited ? Object.keys(edited.problems) : [];

const actionIn = (edited: ReturnType<typeof editedCopy>) => {
  if ("problems" in edited) throw new Error(JSON.stringify(edited.problems));
  return edited.action;
};

describe("the fields to edit", () => {
  test("have the mask that the tests below put elsewhere", () => {
    expect(fieldsToEdit(anAction(SECRETIVE)).headers).toContain(maskFor(SECRET, "Bearer token"));
  });

  test("show no secret, and the same of an action without any", () => {
    expect(JSON.stringify(fieldsToEdit(anAction(SECRETIVE)))).not.toContain(SECRET);
    expect(fieldsToEdit(anAction({ headers: { A: "1", B: "2" }, body: '{"order":7}' }))).toMatchObject({
      headers: "A: 1\nB: 2",
      body: '{\n  "order": 7\n}',
    });
  });

  test("have no body that is bytes, or too long for a form", () => {
    expect(fieldsToEdit(anAction({ body: "AAEC", extras: { bodyKind: "base64" } })).body).toBeNull();
    expect(fieldsToEdit(anAction({ body: JSON.stringify("ü".repeat(9_000)) })).body).toBeNull();
    // Masks would make it short enough, but are not looked for in a body that long.
    const secrets = JSON.stringify(Array.from({ length: 2_000 }, () => `a:${SECRET}${SECRET}${SECRET}@`));
    expect(fieldsToEdit(anAction({ body: secrets })).body).toBeNull();
    expect(fieldsToEdit(anAction({ body: null })).body).toBe("");
  });
});

describe("an edited copy", () => {
  // A browser shows each line break as LF and sends it as CRLF.
  const asSent = (text: string | null) => (text ?? "").replaceAll(/\r\n?|\n/g, "\r\n");
  const sentBack = (body: string, change = (text: string) => text) =>
    edit(anAction({ body, extras: { bodyKind: "text" } }), (shown) => ({ body: asSent(change(shown.body ?? "")) }));

  test("keeps the line breaks of a text: a multipart body has CRLF, which its target needs", () => {
    for (const body of ["--b\r\n\r\nx\r\n--b--\r\n", "a\nb\n", "a\rb", "a\nb\r\nc\rd", " ", "", "x"]) {
      expect(actionIn(sentBack(body)).body).toBe(body);
    }
    const edited = (body: string) => sentBack(body, (text) => text.replace("x", "y\nz"));
    expect(actionIn(edited("--b\r\n\r\nx\r\n--b--\r\n")).body).toBe("--b\r\n\r\ny\r\nz\r\n--b--\r\n");
    expect(actionIn(edited("x\n")).body).toBe("y\nz\n");
    expect(actionIn(edited("x\r")).body).toBe("y\rz\r");
    expect(actionIn(edited("x")).body).toBe("y\nz");
    expect(problemsOf(edited("a\nb\r\nx"))).toEqual(["body"]);
    expect(actionIn(sentBack("x", () => " ")).body).toBeNull();
  });

  test("of unchanged fields is the same request, as a copy of the other", () => {
    const action = anAction(SECRETIVE);
    const { url, body, headers, extras } = actionIn(edit(action));
    expect({ url, body }).toEqual({ url: action.url, body: action.body });
    expect(headers).toEqual({ Authorization: `Bearer ${SECRET}`, "X-Plan": "gold" });
    expect(extras.metadata).toEqual({ copy_of: action.id });
  });

  test("fills masks in a changed text, and keeps numbers as they are written", () => {
    const copy = actionIn(
      edit(anAction(SECRETIVE), ({ url, body }) => ({
        url: url.replace("orders", "refunds"),
        body: (body ?? "").replace('"a"', '"b"'),
      })),
    );
    expect(copy.url).toBe(`https://api.example.com/refunds?token=${SECRET}`);
    expect(copy.body).toBe(`{"n":1.0,"password":"${SECRET}","note":"b"}`);
  });

  test("takes forms, texts and other methods, and an empty body for none", () => {
    const form = anAction({ body: "b=2&b=1&a=x", extras: { bodyKind: "form" } });
    const changed = actionIn(edit(form, ({ body }) => ({ method: "PUT", body: (body ?? "").replace('"x"', '"y z"') })));
    expect([changed.method, changed.body]).toEqual(["PUT", "b=2&b=1&a=y+z"]);
    const text = anAction({ body: "a\r\nb", extras: { bodyKind: "text" } });
    // A browser sends its own line breaks; what was not changed stays.
    expect(actionIn(edit(text, () => ({ body: "a\r\nb" }))).body).toBe("a\r\nb");
    const none = actionIn(edit(text, () => ({ body: " " })));
    expect([none.body, none.extras.bodyKind]).toEqual([null, undefined]);
  });

  test.each([
    ["a hidden value for another host", { url: "https://evil.example/" }, ["url"]],
    ["a mask that hides nothing here", { body: '{"a":"••••(password,9-chars)"}' }, ["body"]],
    ["a mask alone", { title: "••••" }, ["title"]],
    ["the mask of one header in another", { headers: `X-Mine: ${maskFor(SECRET, "Bearer token")}` }, ["headers"]],
    ["a header twice", { headers: "A: 1\nA: 2" }, ["headers"]],
    ["a line that is no header", { headers: "A" }, ["headers"]],
    ["what is no JSON", { body: "{" }, ["body"]],
    ["JSON that is too deep", { body: "[".repeat(200) + "]".repeat(200) }, ["body"]],
    ["another method", { method: "BREW" }, ["method"]],
  ])("is refused for %s", (_, change, fields) => {
    expect(problemsOf(edit(anAction(SECRETIVE), () => change))).toEqual(fields);
  });

  test("goes to another host with what was written anew, and as it is where nothing is hidden", () => {
    const url = "https://other.example/";
    const lines = anAction({ body: "a\r\nb", extras: { bodyKind: "text" } });
    expect(actionIn(edit(lines, () => ({ url }))).body).toBe("a\r\nb");
    expect(actionIn(edit(anAction(SECRETIVE), () => ({ url, headers: "A: 1", body: "{}", title: "" }))).url).toBe(url);
  });

  test("fills no mask that may stand for itself", () => {
    const { title } = fieldsToEdit(anAction({ title: `password=${SECRET}` }));
    const action = anAction({ title: `password=${SECRET} ${title}` });
    expect(problemsOf(edit(action, (fields) => ({ title: `${fields.title}!` })))).toEqual(["title"]);
  });

  test("keeps a body that is too long to edit, for the same host only if it has secrets", () => {
    const long = (more: string) => anAction({ body: JSON.stringify(["x".repeat(50_000), more]) });
    const elsewhere = () => ({ url: "https://evil.example/" });
    expect(problemsOf(edit(long(`password=${SECRET}`), elsewhere))).toEqual(["url"]);
    expect(actionIn(edit(long(`password=${SECRET}`))).body).toContain(SECRET);
    expect(actionIn(edit(long("plain"), elsewhere)).body).toContain("plain");
  });

  test("keeps bytes that it can't show, for the same host only", () => {
    const bytes = anAction({ body: "AAEC", extras: { bodyKind: "base64" } });
    expect(actionIn(edit(bytes)).body).toBe("AAEC");
    expect(problemsOf(edit(bytes, () => ({ url: "https://other.example/" })))).toEqual(["url"]);
  });

  test("has the metadata of the other, as far as there is room for its id", () => {
    const names = Array.from({ length: METADATA_NAMES_MAX }, (_, n) => [`n${n}`, "v"] as const);
    const full = anAction({ extras: { metadata: Object.fromEntries(names) } });
    expect(metadataOfCopy(full)).toEqual(Object.fromEntries(names));
    const again = anAction({ extras: { metadata: { copy_of: "act_0" } } });
    expect(metadataOfCopy(again)).toEqual({ copy_of: again.id });
  });
});
