import { describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { createSchemaPrinter } from "../../src/api/openapi.ts";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { OPERATIONS as ROWS } from "../support/operations.ts";
import { at, DOCUMENT, inlined, type Node, OPERATIONS, schemasOf } from "../support/openapi.ts";

const SCHEMAS = schemasOf(DOCUMENT);

const statuses = (numbers: Iterable<number>) => [...new Set(numbers)].toSorted((a, b) => a - b).map(String);

describe("the API description", () => {
  test("is an OpenAPI 3.1 document of version 0.1.0, to an independent linter too", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(DOCUMENT))).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
    // Throws where one leads nowhere.
    expect(validator.resolveRefs()).toBeObject();
    expect(DOCUMENT["info"]).toMatchObject({ title: "Outgate", version: "0.1.0" });
    expect(DOCUMENT["servers"]).toMatchObject([{ url: "http://127.0.0.1:3000" }]);
  });

  test("holds only sound schemas, and only examples that fit them, to another validator than ours", () => {
    const ajv = new Ajv2020({
      strict: true,
      strictTypes: false,
      strictRequired: false,
      validateFormats: false,
    });
    expect(SCHEMAS.length).toBeGreaterThan(50);
    for (const [path, schema] of SCHEMAS) {
      const wholeSchema = inlined(schema);
      expect({ path, isSound: ajv.validateSchema(at(wholeSchema)) }).toEqual({ path, isSound: true });
      for (const [where, part] of fieldsOf(at(wholeSchema), path)) {
        const fits = ajv.compile(part);
        for (const example of examplesOf(part)) {
          expect({ where, example, fits: fits(example) }).toEqual({ where, example, fits: true });
        }
      }
    }
  });

  test("says of every field and parameter what it is, and gives an example", () => {
    const bare = SCHEMAS.flatMap(([path, schema]) => fieldsOf(schema, path))
      .filter(
        ([where]) => where.includes("/properties/") || where.includes("/parameters/") || where.includes("/headers/"),
      )
      // A reference is described where it leads; the enum of an error narrows what the envelope describes.
      .filter(([where, field]) => !("$ref" in field) && !where.includes("/allOf/"))
      .filter(([, field]) => typeof field["description"] !== "string" || !hasExample(field));
    expect(bare.map(([where]) => where)).toEqual([]);
  });

  test("holds every example of an answer against the answer", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    for (const [code, response] of Object.entries(at(DOCUMENT, "components", "responses"))) {
      const media = at(inlined(response), "content", "application/json");
      const fits = ajv.compile(at(media, "schema"));
      expect(Object.keys(at(media, "examples"))).toEqual([code]);
      expect(fits(at(media, "examples", code)["value"])).toBe(true);
    }
  });

  test("has one schema under one title", () => {
    const printer = createSchemaPrinter();
    printer.print({ title: "A", type: "string" });
    printer.print({ title: "A", type: "string" });
    expect(() => printer.print({ title: "A", type: "integer" })).toThrow("Two different schemas");
  });
});

describe("of the operations, the API description", () => {
  test("has every operation, and no other", () => {
    const printed = OPERATIONS.map(({ id, method, path, node }) => ({ id, method, path, tag: node["tags"] }));
    expect(printed).toEqual(ROWS.map(({ id, method, path, tag }) => ({ id, method, path, tag: [tag] })));
    expect(ROWS[0]?.id).toBe("createAction");
    expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length);
  });

  test.each(ROWS.map((row) => [row.id, row] as const))("says all of %s", (id, row) => {
    const node = at(OPERATIONS.find((operation) => operation.id === id)?.node);
    const codes = [...row.errors, "method_not_allowed" as const];
    expect(Object.keys(at(node, "responses"))).toEqual(
      statuses([...row.success, ...codes.map((code) => HTTP_STATUS[code])]),
    );
    for (const code of codes) {
      const response = at(node, "responses", String(HTTP_STATUS[code]), "content", "application/json");
      expect(codesOf(at(response, "schema"))).toContain(code);
    }
    // Whoever needs a key is told; where none is needed, nobody asks.
    const none = id === "getMetrics" ? [{}, { metricsToken: [] }] : [];
    expect(node["security"]).toEqual(row.permission === null ? none : undefined);
    for (const response of Object.values(at(node, "responses")))
      expect(at(response, "headers")).toHaveProperty("X-Request-Id");
    const parameters = parametersOf(node);
    expect(parameters).toContain("header X-Request-Id");
    expect(parameters.includes("path id")).toBe(row.path.includes("{id}"));
    expect(parameters.includes("path token")).toBe(row.path.includes("{token}"));
  });

  test("says which headers a request and its answers have", () => {
    const create = at(OPERATIONS.find(({ id }) => id === "createAction")?.node);
    expect(parametersOf(create)).toEqual(["query wait", "header Idempotency-Key", "header X-Request-Id"]);
    const headersAt = (status: string) => Object.keys(at(create, "responses", status, "headers"));
    expect(headersAt("201")).toEqual(["X-Request-Id", "Location"]);
    expect(headersAt("401")).toEqual(["X-Request-Id", "WWW-Authenticate"]);
    expect(headersAt("405")).toEqual(["X-Request-Id", "Allow"]);
    expect(headersAt("429")).toEqual(["X-Request-Id", "Retry-After"]);
    expect(headersAt("503")).toEqual(["X-Request-Id", "Retry-After"]);
    expect(at(DOCUMENT, "components", "securitySchemes", "apiKey")).toMatchObject({ type: "http", scheme: "bearer" });
    expect(DOCUMENT["security"]).toEqual([{ apiKey: [] }]);
  });
});

/** The codes that a response may have: the narrowest list of them. */
function codesOf(schema: Node): unknown {
  const { allOf } = schema;
  return Array.isArray(allOf) ? at(allOf[1], "properties", "error", "properties", "code")["enum"] : [];
}

function parametersOf(node: Node): readonly string[] {
  const { parameters } = node;
  return Array.isArray(parameters) ? parameters.map((one) => [at(one)["in"], at(one)["name"]].join(" ")) : [];
}

/** A schema and everything in it that has a name. */
function fieldsOf(schema: Node, path: string): readonly (readonly [where: string, field: Node])[] {
  const parts = [...(Array.isArray(schema["allOf"]) ? schema["allOf"] : [])];
  const items = at(schema, "items");
  return [
    [path, schema],
    ...Object.entries(at(schema, "properties")).flatMap(([name, field]) =>
      fieldsOf(at(field), `${path}/properties/${name}`),
    ),
    ...parts.flatMap((part, index) => fieldsOf(at(part), `${path}/allOf/${index}`)),
    ...(Object.keys(at(items, "properties")).length > 0 ? fieldsOf(items, `${path}/items`) : []),
  ];
}

function examplesOf({ examples, default: usual }: Node): readonly unknown[] {
  return [...(Array.isArray(examples) ? examples : []), ...(usual === undefined ? [] : [usual])];
}

/** Its own, or one of each of its members. */
function hasExample(field: Node): boolean {
  const isWhole = Object.keys(at(field, "properties")).length > 0 || "$ref" in at(field, "items");
  return examplesOf(field).length > 0 || isWhole;
}
