import { describe, expect, test } from "bun:test";
import { at, DOCUMENT, inlined, type Node, OPERATIONS } from "../support/openapi.ts";

/** The tables of the specification, copied by hand: name, type, nullable, required, and what else they say. */
type Row = readonly [name: string, type: string, nullable: boolean, required: boolean, says?: Node];

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

const STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];

const DATE = { format: "date-time" };

const URI = { format: "uri" };

/** Spec "Action", and the three members of decisions 12. Every member that may be null is always there. */
const ACTION: readonly Row[] = [
  ["id", "string", false, true],
  ["status", "string", false, true, { enum: STATUSES }],
  ["url", "string", false, true, URI],
  ["method", "string", false, true, { enum: METHODS }],
  ["body", "object", true, true],
  ["headers", "object", true, true, { additionalProperties: { type: "string" } }],
  ["dedupe", "string", true, true],
  ["run", "integer", false, true, { minimum: 1 }],
  ["attempts", "integer", false, true, { minimum: 0 }],
  ["retries", "integer", false, true, { minimum: 1, maximum: 100 }],
  ["created_at", "string", false, true, DATE],
  ["created_by", "object", false, true],
  ["started_at", "string", true, true, DATE],
  ["finished_at", "string", true, true, DATE],
  ["next_retry_at", "string", true, true, DATE],
  ["last_error", "string", true, true],
  ["response_code", "integer", true, true],
  ["response_body", "any", true, true],
  ["duration_ms", "integer", true, true],
  ["approve", "boolean", false, true],
  ["approved_at", "string", true, true, DATE],
  ["approved_by", "string", true, true],
  ["policy", "object", false, false],
  ["credential", "object", false, false],
  ["callback", "string", true, true, URI],
  ["idempotency_key", "string", true, true],
  ["retries_remaining", "integer", false, false, { minimum: 0 }],
  ["next_retry_in_seconds", "integer", false, false, { minimum: 0 }],
  ["actions", "array", false, true, { items: { enum: ["approve", "cancel", "retry"], type: "string" } }],
  ["error", "object", false, false],
  ["receipt_url", "string", true, true, { format: "uri-reference" }],
  ["deduplicated", "boolean", false, false, { const: true }],
  ["differs", "array", false, false, { items: { type: "string" } }],
  ["response_truncated", "boolean", false, false, { const: true }],
  ["late_result", "object", false, false],
  ["on_unknown", "string", false, false, { const: "stop" }],
  ["paused", "boolean", false, false, { const: true }],
  ["hidden_values", "integer", false, false, { minimum: 1 }],
  ["pause", "object", false, false],
];

/** Spec "error object". */
const ERROR: readonly Row[] = [
  ["source", "string", false, true, { enum: ["target", "dispatch"] }],
  ["message", "string", false, true],
  ["response_code", "integer", true, true],
  ["response_body", "any", true, true],
];

/** Members of docs/extensions.md that an action has where they were set, and that a create takes under the same names. */
const BODIES: readonly Row[] = [
  ["form", "object", false, false],
  ["text", "string", false, false],
  ["base64", "string", false, false],
];

const SAID: readonly Row[] = [
  ["json", "any", true, false],
  ["title", "string", false, false],
  ["reason", "string", false, false],
  ["metadata", "object", false, false],
  ["extras", "object", false, false],
];

const RULES: readonly Row[] = [
  ["expires_at", "string", false, false, DATE],
  ["run_at", "string", false, false, DATE],
  ["timeout_ms", "integer", false, false, { minimum: 1_000, maximum: 120_000 }],
  ["backoff", "object", false, false, { required: ["base_ms", "cap_ms"], additionalProperties: false }],
  ["give_up_on", "array", false, false, { maxItems: 50 }],
];

/** Spec "POST /v1/actions", and `on_unknown` of decisions 4. */
const CREATE: readonly Row[] = [
  ["url", "string", false, true, URI],
  ["method", "string", false, false, { enum: METHODS, default: "POST" }],
  ["body", "object", false, false],
  ["headers", "object", false, false, { additionalProperties: { type: "string" } }],
  ["dedupe", "string", false, false],
  ["retries", "integer", false, false, { minimum: 1, maximum: 100, default: 3 }],
  ["approve", "boolean", false, false, { default: false }],
  ["sync", "boolean", false, false, { default: false }],
  ["notify", "object", false, false, { required: ["email"], additionalProperties: false }],
  ["callback", "string", false, false, URI],
  ["on_unknown", "string", false, false, { enum: ["retry", "stop"], default: "retry" }],
  ["reason", "string", false, false, { maxLength: 1_000 }],
  ["json", "any", true, false],
  ...BODIES,
  ["title", "string", false, false, { maxLength: 120 }],
  ["metadata", "object", false, false, { maxProperties: 20 }],
  ...RULES,
  ["delay_seconds", "integer", false, false, { minimum: 1, maximum: 31_536_000 }],
  ["credential", "string", false, false, { pattern: "^[a-z0-9][a-z0-9_.-]{0,62}$" }],
];

/** Spec "Errors". */
const ENVELOPE: readonly Row[] = [
  ["code", "string", false, true],
  ["message", "string", false, true],
  ["request_id", "string", false, true, { pattern: "^req_[A-Za-z0-9_-]+$" }],
  ["details", "array", false, false],
];

const ISSUE: readonly Row[] = [
  ["field", "string", false, true],
  ["message", "string", false, true],
  ["code", "string", false, true, { const: "invalid" }],
];

const component = (title: string): Node => at(inlined(at(DOCUMENT, "components", "schemas", title)));

describe("the API description says what the specification's tables say", () => {
  const envelope = at(component("ErrorEnvelope"), "properties", "error");
  const tables = [
    ["Action", component("Action"), [...ACTION, ...BODIES, ...SAID, ...RULES]],
    ["the error object", at(component("Action"), "properties", "error"), ERROR],
    ["a create", component("CreateAction"), CREATE],
    ["the error envelope", envelope, ENVELOPE],
    ["a validation issue", at(envelope, "properties", "details", "items"), ISSUE],
  ] as const;

  test.each(tables)("of %s, and no more", (_what, schema, rows) => {
    expect(Object.keys(at(schema, "properties")).toSorted()).toEqual(rows.map(([name]) => name).toSorted());
    const required = rows.filter((row) => row[3]).map(([name]) => name);
    expect(schema["required"]).toEqual(expect.arrayContaining(required));
    expect(schema["required"]).toHaveLength(required.length);
  });

  test.each(tables.flatMap(([what, schema, rows]) => rows.map((row) => [what, row[0], schema, row] as const)))(
    "of %s: %s",
    (_what, name, schema, [, type, nullable, , says = {}]) => {
      const field = at(schema, "properties", name);
      const [given, none] = Array.isArray(field["anyOf"]) ? field["anyOf"] : [field];
      // No type is every type, null too.
      const types = [at(given)["type"] ?? ["any", "null"], at(none)["type"] ?? []].flat();
      expect({ type: types[0], nullable: types.includes("null") }).toEqual({ type, nullable });
      expect(given).toMatchObject(says);
    },
  );

  test("a create takes no other member, and its e-mail is one", () => {
    expect(component("CreateAction")["additionalProperties"]).toBe(false);
    expect(at(component("CreateAction"), "properties", "notify", "properties", "email")["format"]).toBe("email");
  });

  test("of a create's answers, and its operationId", () => {
    const create = OPERATIONS.find(({ id }) => id === "createAction");
    expect(create).toMatchObject({ method: "POST", path: "/v1/actions" });
    const statuses = Object.keys(at(create?.node, "responses"));
    expect(statuses).toEqual(expect.arrayContaining(["200", "201", "400", "401", "405", "413", "429"]));
    expect(at(create?.node, "requestBody")["required"]).toBe(true);
  });

  test("of ids, which match the pattern of the specification", () => {
    for (const example of ["act_x", `act_${"Z".repeat(64)}`]) {
      expect(example).toMatch(new RegExp(String(component("ActionId")["pattern"])));
      expect(example).toMatch(/^act_[A-Za-z0-9_-]+$/);
    }
  });

  test("in names that are snake_case, and identifiers that have a prefix", () => {
    const names = Object.values(at(DOCUMENT, "components", "schemas")).flatMap((schema) =>
      Object.keys(at(schema, "properties")),
    );
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !/^[a-z]+[0-9]{0,2}(_[a-z]+)*$/.test(name))).toEqual([]);
  });
});
