import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { DomainError, type Issue } from "../../src/core/domain-error.ts";
import { EMPTY_FORM, filled, formIdIn, type FormState, fieldProblem } from "../../src/pages/frame/forms.ts";
import { CHOICES_WITH_FIELDS, schemaForm } from "../../src/pages/frame/schema-form.tsx";
import { render } from "../../src/ui/layout.tsx";

const FORM = schemaForm(
  Type.Object(
    {
      kind: Type.Enum(["mail", "webhook"]),
      send_to: Type.Optional(Type.Array(Type.String(), { description: "Addresses." })),
      url: Type.Optional(Type.String()),
      methods: Type.Optional(Type.Array(Type.Enum(["GET", "POST"], { type: "string" }))),
      codes: Type.Optional(Type.Array(Type.Union([Type.Integer(), Type.String()]))),
      timeout_ms: Type.Optional(Type.Integer({ minimum: 1_000, maximum: 120_000 })),
      sum: Type.Optional(
        Type.Object({ per: Type.String(), limit: Type.Number(), same: Type.Optional(Type.String({ minLength: 1 })) }),
      ),
      secret: Type.Optional(Type.String()),
      ends_at: Type.Optional(Type.String()),
      note: Type.Optional(Type.String()),
      enabled: Type.Optional(Type.Boolean()),
      hidden: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
  {
    kind: { choices: ["mail", "webhook"].map((value) => ({ value, label: value, hint: "" })) },
    send_to: { onlyFor: ["mail"] },
    url: { label: "URL", onlyFor: ["webhook"] },
    methods: {},
    codes: { type: "text" },
    timeout_ms: { type: "duration" },
    "sum.per": { options: [["day", "a day"]] },
    "sum.limit": {},
    "sum.same": {},
    secret: { type: "password" },
    ends_at: { type: "datetime-local" },
    note: { type: "code" },
    enabled: { label: "On" },
  },
);

const BODY = {
  kind: "mail",
  send_to: ["a b", "c"],
  methods: ["POST"],
  codes: [401, "5xx"],
  timeout_ms: 90_000,
  sum: { per: "day", limit: 0.1, same: "key" },
  ends_at: "2026-03-04T12:00:00Z",
  note: "one\n two",
  enabled: true,
};

const read = (values: Readonly<Record<string, string>>): unknown =>
  FORM.check(new Map(Object.entries({ kind: "mail", ...values })));

const issuesOf = (values: Readonly<Record<string, string>>): readonly Issue[] => {
  try {
    read(values);
    return [];
  } catch (error) {
    if (error instanceof DomainError) return error.issues;
    throw error;
  }
};

const problemsOf = (values: Readonly<Record<string, string>>) => issuesOf(values).map(({ field }) => field);

const htmlOf = (state: FormState) => render(FORM.Form({ user: null, action: "/x", state, submit: "Save" }));

describe("a form by its schema", () => {
  test("shows a body and reads it back as it was", () => {
    const { values } = FORM.filledWith(BODY);
    expect(Object.fromEntries(values)).toMatchObject({
      send_to: "a b\nc",
      method_POST: "yes",
      codes: "401, 5xx",
      timeout_ms: "90 s",
      "sum.limit": "0.1",
      ends_at: "2026-03-04T12:00",
    });
    const checked: unknown = FORM.check(values);
    expect(checked).toEqual(BODY);
  });

  test("reads what is shown alone: no field of another choice, and no member without a field", () => {
    expect(read({ kind: "webhook", send_to: "a", url: "b", hidden: "x", note: "c" })).toEqual({
      kind: "webhook",
      url: "b",
      note: "c",
    });
    // A text that happens to be the name of a choice chooses nothing.
    expect(read({ note: "webhook", url: "b" })).toEqual({ kind: "mail", note: "webhook" });
  });

  test("leaves out what is empty, and members of which only a default is chosen", () => {
    expect(read({ send_to: " ", timeout_ms: "", note: "", "sum.per": "day", "sum.limit": "", secret: "s " })).toEqual({
      kind: "mail",
      secret: "s ",
    });
    expect(problemsOf({ "sum.same": "key" })).toEqual(["sum.per", "sum.limit"]);
  });

  test("takes no number that it would round, and no text for a number", () => {
    for (const limit of ["x", "1e3", "0x10", "-1", "123456789012.123456789", "99999999999999999"]) {
      expect(problemsOf({ "sum.per": "day", "sum.limit": limit }), limit).toEqual(["sum.limit"]);
    }
    for (const [limit, value] of [
      ["007", 7],
      ["1000.50", 1000.5],
      ["0.000000001", 1e-9],
    ] as const) {
      expect(read({ "sum.per": "day", "sum.limit": limit })).toMatchObject({ sum: { limit: value } });
    }
    expect(problemsOf({ timeout_ms: "soon" })).toEqual(["timeout_ms"]);
  });

  test("says at a field what is wrong with it or a part of it, and the rest above", () => {
    const issues = [
      { field: "send_to.1", message: "Must be an address." },
      { field: "enabled", message: "Not now." },
      { field: "sum", message: "Too much." },
    ];
    const state = { ...EMPTY_FORM, issues, problem: "All." };
    expect([fieldProblem(state, "send_to"), fieldProblem(state, "send")]).toEqual(["Must be an address.", null]);
    const html = htmlOf(state);
    for (const said of [
      "Not now. Too much.",
      'id="send_to-problem"',
      ">Send to</label>",
      ">Addresses.<",
      'class="only for-mail"',
      'name="method_POST"',
    ]) {
      expect(html).toContain(said);
    }
  });

  test("says in words for people what the schema refuses, and as a service says it what that refuses", () => {
    const issues = issuesOf({ kind: "mail", timeout_ms: "1 ms" });
    expect(issues).toEqual([{ field: "timeout_ms", message: "Enter a time from 1 s to 2 min." }]);
    const later = [{ field: "timeout_ms", message: "This server waits at most 30 s." }];
    for (const shown of [issues, later])
      expect(htmlOf({ ...EMPTY_FORM, issues: shown, problem: "All." })).toContain(`small">${shown[0]?.message}<`);
  });

  test("has fields that are seen where their choice is made", async () => {
    const css = await Bun.file("src/ui/styles/schema-form.css").text();
    for (const choice of CHOICES_WITH_FIELDS)
      expect(css).toContain(`form:has([value="${choice}"]:checked) .for-${choice}`);
  });

  test("never shows a password again", () => {
    const state = filled({ secret: "hunter2" });
    expect(htmlOf(state)).not.toContain("hunter2");
  });
});

test("a form that is sent twice is known by an id of ours alone", () => {
  const ids = ["req_0ab1", undefined, "", "req_", "key_0ab1", "REQ_0AB1", `req_${"0".repeat(65)}`, "req_0 ab1"];
  const taken = ids.map((id) => formIdIn(new Map(id === undefined ? [] : [["form_id", id]])));
  expect(taken).toEqual(["req_0ab1", ...ids.slice(1).map(() => null)]);
});
