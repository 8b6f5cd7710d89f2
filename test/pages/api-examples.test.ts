import { expect, test } from "bun:test";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { compile } from "../../src/api/check.ts";
import { apiReference, groupEntries } from "../../src/pages/docs/api-reference.ts";
import { splitDescription } from "../../src/pages/docs/api-fields.tsx";
import { GUIDE_GROUPS } from "../../src/pages/docs/guides.ts";
import { createDocsSite } from "../../src/pages/docs/site.tsx";
import { bodyExample, requestExamples } from "../../src/pages/docs/api-pages.tsx";
import { textOf } from "../support/forms.ts";
import { openRealServer } from "../http/real-server.ts";
import { OPERATIONS } from "../support/operations.ts";

const reference = apiReference(OPERATIONS, "http://outgate.example");

const ENTRIES = reference.entries;

const examples = (label: string) =>
  ENTRIES.flatMap((entry) =>
    requestExamples(entry, reference)
      .filter((one) => one.label === label)
      .map(({ text }) => ({ id: entry.operationId, text })),
  );

test("the body of every example is one that its operation takes", () => {
  const told = ENTRIES.filter(({ body }) => body !== null);
  expect(told.length).toBeGreaterThan(15);
  for (const entry of told) {
    const schema = OPERATIONS.find(({ id }) => id === entry.operationId)?.body?.schema;
    const example = bodyExample(entry, reference);
    expect(schema === undefined ? null : compile(schema).issues(example), entry.operationId).toEqual([]);
  }
});

test("the body of an example is accepted as it stands, unless it names what has to be there before", async () => {
  await using app = await openRealServer({ starts: false });
  const refused: string[] = [];
  for (const entry of ENTRIES.filter(({ body, path }) => body !== null && !path.includes("{"))) {
    const { text } = await app.call(entry.method, entry.path, JSON.stringify(bodyExample(entry, reference)));
    if (text.includes('"validation_error"')) refused.push(entry.operationId);
  }
  expect(refused.toSorted()).toEqual(["createCredential", "reorderRules", "sendTestMail", "testCallback"]);
});

test("the examples are code: a shell, TypeScript and Python read them", async () => {
  const shell = examples("curl").map(({ text }) => text);
  expect(await exitOf(["bash", "-n"], shell.join("\n"))).toBe(0);
  const typescript = new Bun.Transpiler({ loader: "ts" });
  for (const { id, text } of examples("TypeScript")) {
    const result = (() => {
      try {
        return typescript.transformSync(text).length > 0;
      } catch (error) {
        return String(error);
      }
    })();
    expect(result, id).toBe(true);
  }
  if (Bun.which("python3") === null) return console.log("skipped: there is no python3, so no example was read by it");
  const python = examples("Python").map(({ text }) => text);
  expect(await exitOf(["python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"], python.join("\n"))).toBe(0);
});

test("an example names the address, the key as a file, and the media type where there are several", () => {
  const of = (id: string) => examples("curl").find((one) => one.id === id)?.text ?? "";
  expect(of("createAction")).toStartWith("curl -s 'http://outgate.example/v1/actions' \\\n  -H @<(echo");
  expect(of("getReceipt")).toContain("-H 'Accept: application/json'");
  expect(of("getHealth")).not.toContain("Authorization");
  expect(of("revokeKey")).toContain("-X DELETE");
  const [, typescript, python] = requestExamples(
    ENTRIES.find(({ operationId }) => operationId === "createAction") ?? never(),
    reference,
  );
  expect(typescript?.text).toContain('"approve": true');
  expect(python?.text).toContain('"approve": True,');
});

test("a description begins with a short sentence, and lists one rule each after it", () => {
  for (const { operationId: id, description, notes = [] } of ENTRIES) {
    expect([description.includes("\n"), description.length <= 125], id).toEqual([false, true]);
    expect(
      notes.filter((note) => note.length > 230),
      id,
    ).toEqual([]);
  }
  expect(splitDescription("One.\n\nTwo.\n\n- a\n- b - c")).toEqual({
    paragraphs: ["One.", "Two."],
    notes: ["a", "b - c"],
  });
});

test("the page of every operation has its parameters and body, examples, responses, and its errors with what they mean", async () => {
  const site = createDocsSite(GUIDE_GROUPS, OPERATIONS, "http://outgate.example");
  const index = (await site.page("api"))?.html;
  expect(ENTRIES.length).toBeGreaterThan(50);
  for (const { operationId: id, path, errors, successes } of ENTRIES) {
    const html = (await site.page(`api/${id}`))?.html ?? "";
    const { method, summary, body, query, headers = [] } = OPERATIONS.find((one) => one.id === id) ?? never();
    expect(html).toContain(`<h1>${summary.replaceAll("'", "&#39;")}</h1>`);
    expect(textOf(html)).toContain(`${method} ${path}`);
    expect(index).toContain(`<a href="/docs/api/${id}">`);
    for (const label of ["curl", "TypeScript", "Python"]) expect(html).toContain(`aria-label="${label}"`);
    const { properties = {} } = (body?.schema ?? {}) as { properties?: object };
    for (const field of [...Object.keys(query?.properties ?? {}), ...headers, ...Object.keys(properties)]) {
      expect(html, id).toContain(`<code>${field}</code>`);
    }
    const [, code = ""] = html.split('<div class="operation-code">');
    expect(code.includes(">Request<") && code.includes("http://outgate.example/"), id).toBe(true);
    for (const { status } of successes) expect(html).toContain(`<b>${status}</b>`);
    for (const { status } of successes) expect(code).toMatch(new RegExp(`Response [^<]*${status}`));
    const [, table = ""] = html.split("Errors by status</caption>");
    const rows = table.split("<tr>").slice(2);
    expect(rows.length, `${id} ${path}`).toEqual(errors.length);
    for (const [at, name] of errors.entries()) {
      expect(rows[at]).toContain(
        `<td>${HTTP_STATUS[name]}</td><td><a href="/docs/errors#${name}"><code>${name}</code></a>`,
      );
      expect(rows[at]).toMatch(/<\/a> \w.{10,}/);
    }
  }
});

test("every operation is in one group", () => {
  const grouped = groupEntries(ENTRIES).flatMap(({ entries }) => entries);
  expect(grouped.toSorted(byId)).toEqual([...ENTRIES].toSorted(byId));
  // The last group is for the service itself.
  expect(
    groupEntries(ENTRIES)
      .at(-1)
      ?.entries.filter(({ path }) => path.startsWith("/v1/")),
  ).toEqual([]);
});

function byId(a: { readonly operationId: string }, b: { readonly operationId: string }): number {
  return a.operationId < b.operationId ? -1 : 1;
}

async function exitOf(command: string[], input: string): Promise<number> {
  const child = Bun.spawn(command, { stdin: new Blob([input]), stdout: "ignore", stderr: "inherit" });
  return child.exited;
}

function never(): never {
  throw new Error("There is no such operation.");
}
