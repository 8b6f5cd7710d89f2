import { describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { createSchemaPrinter } from "../../src/http/openapi.ts";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { OPERATIONS as ROWS } from "../support/operations.ts";
import { at, DOCUMENT, inlined, type Node, OPERATIONS, schemasOf } from "../support/openapi.ts";

/** Each once: a header stands in every response that has it. */
const SCHEMAS = [...Map.groupBy(schemasOf(DOCUMENT), ([, schema]) => JSON.stringify(schema)).values()].flatMap(
  ([first]) => (first === undefined ? [] : [first]),
);

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
    const seen = new Set<string>();
    for (const [path, schema] of SCHEMAS) {
      const wholeSchema = inlined(schema);
      expect(ajv.validateSchema(at(wholeSchema)), path).toBe(true);
      for (const [where, part] of fieldsOf(at(wholeSchema), path)) {
        const examples = examplesOf(part);
        const text = JSON.stringify(part);
        // An action stands in every page of actions too.
        if (examples.length === 0 || seen.has(text)) continue;
        seen.add(text);
        const fits = ajv.compile(part);
        for (const example of examples) {
          expect(fits(example), JSON.stringify([where, example])).toBe(true);
        }
      }
    }
  });

  test("says of every field and parameter what it is, and gives an example", () => {
    const bare = SCHEMAS.flatMap(([path, schema]) => fieldsOf(schema, path))
      .filter(
        ([where]) => where.includes("/properties/") || where.includes("/parameters/") || where.includes("/headers/"),
      )
      // A reference is described where it leads.
      .filter(([, field]) => !("$ref" in field))
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

  test("names its members in snake_case", () => {
    const names = Object.values(at(DOCUMENT, "components", "schemas")).flatMap((schema) =>
      Object.keys(at(schema, "properties")),
    );
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !/^[a-z]+[0-9]{0,2}(_[a-z]+)*$/.test(name))).toEqual([]);
  });

  test("has one schema under one title", () => {
    const printer = createSchemaPrinter();
    printer.print({ title: "A", type: "string" });
    printer.print({ title: "A", type: "string" });
    expect(() => printer.print({ title: "A", type: "integer" })).toThrow("Two different schemas");
  });
});

describe("generators of clients read the API description, since", () => {
  const nodes = nodesOf(DOCUMENT, "#");
  const paths = (isBroken: (node: Node) => boolean) => nodes.filter(([, node]) => isBroken(node)).map(([path]) => path);

  test("no schema lists several types: what may be null is anyOf, and any value has no type", () => {
    expect(nodes.length).toBeGreaterThan(1_000);
    expect(paths((node) => Array.isArray(node["type"]))).toEqual([]);
  });

  test("every array says what is in it, and every object that names no member takes any", () => {
    expect(paths((node) => node["type"] === "array" && !("items" in node))).toEqual([]);
    const isEmpty = (node: Node) => node["type"] === "object" && !("properties" in node);
    expect(paths((node) => isEmpty(node) && !("additionalProperties" in node))).toEqual([]);
    expect(paths((node) => "patternProperties" in node)).toEqual([]);
    for (const title of ["CreateAction", "Action"]) {
      const body = at(inlined(at(DOCUMENT, "components", "schemas", title, "properties", "body")));
      const [own] = Array.isArray(body["anyOf"]) ? body["anyOf"] : [body];
      expect(own).toMatchObject({ type: "object", additionalProperties: true });
    }
  });

  test("no schema is put together of parts, and every error is the one envelope", () => {
    expect(paths((node) => "allOf" in node)).toEqual([]);
    const all = nodes.filter(([path]) =>
      /\/responses\/([45]\d\d|[a-z_]+)\/content\/application~1json\/schema$/.test(path),
    );
    expect(all.length).toBeGreaterThan(40);
    // The status of a service that is not ready is no error.
    const others = all.filter(([, node]) => node["$ref"] !== "#/components/schemas/ErrorEnvelope");
    expect(others.map(([path]) => path)).toEqual([
      "#/paths/~1ready/get/responses/503/content/application~1json/schema",
    ]);
  });

  test("an operation has one body of success, whatever its status: a create answers with an Action", () => {
    for (const { id, method, path } of OPERATIONS) {
      const responses = Object.entries(at(DOCUMENT, "paths", path, method.toLowerCase(), "responses"));
      const bodies = responses
        .filter(([status]) => status.startsWith("2"))
        .map(([, response]) => JSON.stringify(at(response, "content", "application/json", "schema")));
      expect(new Set(bodies).size, id).toBe(1);
    }
    const create = at(DOCUMENT, "paths", "/v1/actions", "post", "responses");
    for (const status of ["200", "201"]) {
      expect(at(create, status, "content", "application/json", "schema")).toEqual({
        $ref: "#/components/schemas/Action",
      });
    }
    const required = at(DOCUMENT, "components", "schemas", "Action")["required"];
    expect(required).not.toContain("deduplicated");
    expect(required).not.toContain("differs");
  });

  test("no X-Request-Id has a pattern: a client would refuse the ids of other programs", () => {
    const sent = at(DOCUMENT, "components", "parameters", "X-Request-Id");
    const answered = nodes.filter(([path]) => path.endsWith("/headers/X-Request-Id")).map(([, node]) => node);
    expect(answered.length).toBeGreaterThan(100);
    for (const { schema } of [sent, ...answered]) {
      expect(Object.keys(at(schema))).not.toContain("pattern");
      expect(at(schema)["type"]).toBe("string");
    }
  });

  test("every header of a response stands in its place", () => {
    expect(paths((node) => String(node["$ref"]).startsWith("#/components/headers/"))).toEqual([]);
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
    expect(Object.keys(at(node, "responses"))).toEqual(
      statuses([...row.success, ...row.errors.map((code) => HTTP_STATUS[code])]),
    );
    for (const code of row.errors) {
      const response = at(node, "responses", String(HTTP_STATUS[code]), "content", "application/json");
      expect(Object.keys(at(response, "examples"))).toContain(code);
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

/** Every object of the document that isn't an example, with its JSON pointer. */
function nodesOf(node: unknown, path: string): readonly (readonly [path: string, node: Node])[] {
  if (Array.isArray(node)) return node.flatMap((one, index) => nodesOf(one, `${path}/${index}`));
  if (typeof node !== "object" || node === null) return [];
  const members = Object.entries(node).filter(([name]) => name !== "examples" && name !== "example");
  const inside = members.flatMap(([name, value]) => nodesOf(value, `${path}/${name.replaceAll("/", "~1")}`));
  return [[path, at(node)], ...inside];
}

function parametersOf(node: Node): readonly string[] {
  const { parameters } = node;
  return Array.isArray(parameters) ? parameters.map((one) => [at(one)["in"], at(one)["name"]].join(" ")) : [];
}

/** A schema and everything in it that has a name. */
function fieldsOf(schema: Node, path: string): readonly (readonly [where: string, field: Node])[] {
  const items = at(schema, "items");
  const ways = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [];
  return [
    [path, schema],
    ...Object.entries(at(schema, "properties")).flatMap(([name, field]) =>
      fieldsOf(at(field), `${path}/properties/${name}`),
    ),
    ...(Object.keys(at(items, "properties")).length > 0 ? fieldsOf(items, `${path}/items`) : []),
    // One way is described by the whole.
    ...ways.flatMap((way, index) => fieldsOf(at(way), `${path}/anyOf/${index}`).slice(1)),
  ];
}

function examplesOf({ examples, default: usual }: Node): readonly unknown[] {
  return [...(Array.isArray(examples) ? examples : []), ...(usual === undefined ? [] : [usual])];
}

/** Its own, or one of each of its members. */
function hasExample(field: Node): boolean {
  const ways = Array.isArray(field["anyOf"]) ? field["anyOf"] : [];
  const isWhole = Object.keys(at(field, "properties")).length > 0 || "$ref" in field || "$ref" in at(field, "items");
  return examplesOf(field).length > 0 || isWhole || ways.some((way) => hasExample(at(way)));
}
