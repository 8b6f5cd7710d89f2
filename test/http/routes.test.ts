import { describe, expect, test } from "bun:test";
import { sucrose } from "elysia/sucrose";
import { createRoutes, operation } from "../../src/http/operation.ts";
import {
  KEYS,
  KNOWN_BULK_ID,
  KNOWN_CREDENTIAL_REQUEST_ID,
  KNOWN_ID,
  KNOWN_KEY_ID,
  KNOWN_RULE_ID,
  openStubServer,
} from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

const CREATE = { method: "POST", headers: { "content-type": "application/json" } };

describe("an answer", () => {
  test("to a create is 201, and Location says where it is", async () => {
    const response = await app.ask("/v1/actions", { ...CREATE, body: `{"url":"https://a.example/","body":{"n":1.0}}` });
    expect([response.status, response.headers.get("location")]).toEqual([201, `/v1/actions/${KNOWN_ID}`]);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toContain(`"body":{"n":1.0}`);
  });

  test("with a secret in it is stored nowhere on its way", async () => {
    const response = await app.ask("/v1/signing-secret?origin=HTTPS://API.example.com:443");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await response.json()).toEqual({ origin: "https://api.example.com", secret: "whsec_test", previous: null });
  });
});

describe("a route of another module", () => {
  test("has a request id, a log line and 405 like every route", async () => {
    const route = createRoutes().get("/x/:token", ({ params }) => new Response(`<p>${params.token}</p>`));
    await using other = openStubServer({ routes: [route] });
    const response = await fetch(`${other.url}/x/abc`);
    expect(await response.text()).toBe("<p>abc</p>");
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    expect(other.lines[0]?.fields).toMatchObject({ route: "/x/{token}", status: 200 });
    expect((await fetch(`${other.url}/x/abc`, { method: "POST" })).headers.get("allow")).toBe("GET, HEAD");
  });

  test("that needs a permission and stands outside of /v1 lets nobody in", async () => {
    const hooks = operation({
      operationId: "elsewhere",
      permission: "read",
      tag: "System",
      summary: "",
      description: "",
      answers: {},
      errors: [],
    });
    const open = createRoutes().get("/elsewhere", () => new Response("in"), hooks);
    await using other = openStubServer({ routes: [open] });
    expect((await other.ask("/elsewhere")).status).toBe(401);
  });
});

/** What anybody may read; all other pages are for people who are logged in. */
const PUBLIC =
  /^\/(?:v1|r|a|auth|login|signup|welcome|join|docs|llms|events|assets|health|ready|openapi|metrics)\b|^\/$/;

const IDS = [KNOWN_ID, KNOWN_BULK_ID, KNOWN_KEY_ID, KNOWN_RULE_ID, KNOWN_CREDENTIAL_REQUEST_ID, "grt_1", "ocl_1"];

test("whoever is not logged in is led from every page of people to the login and back, with a key too", async () => {
  const patterns = app.http.routes.flatMap(({ method, path }) =>
    method === "GET" && !PUBLIC.test(path) ? [path] : [],
  );
  expect(patterns.length).toBeGreaterThan(50);
  for (const pattern of [...patterns, "/actions?status=failed"]) {
    const led = [];
    // Of a place whose id is of another kind nobody is told that it needs a login.
    for (const id of pattern.includes(":") ? IDS : [""]) {
      const path = pattern.replaceAll(/:\w+/g, id);
      const { status, headers } = await app.ask(path, { redirect: "manual" });
      if (status === 404) continue;
      led.push(path);
      const to = `/login?${new URLSearchParams({ next: path }).toString()}`;
      expect({ status, to: headers.get("location") }, path).toEqual({ status: 303, to });
    }
    expect(led.length > 0, pattern).toBe(true);
  }
  expect((await app.ask("/", { redirect: "manual" })).headers.get("location")).toBe("/login");
});

test("a pattern is text but for its parameters", async () => {
  const statuses = ["/openapi.json", "/openapiXjson", "/"].map(
    async (path) => (await fetch(`${app.url}${path}`, { redirect: "manual" })).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 404, 303]);
});

test("no route of the API makes Elysia parse cookies, which would copy every response too", () => {
  const parsing = app.http.routes
    .filter(({ path }) => path.startsWith("/v1"))
    .filter(({ hooks, handler }) => sucrose({ ...hooks, handler }).cookie)
    .map(({ method, path }) => `${method} ${path}`);
  expect(parsing).toEqual([]);
});

const JSON_TYPE = { "content-type": "application/json" };

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const bare = (path: string, init?: RequestInit) => fetch(`${app.url}${path}`, init);

const codeOf = async (response: Response): Promise<unknown> => Object((await response.json()) as object).error.code;

/** The envelope without what differs from request to request. */
async function bytesOf(response: Response): Promise<string> {
  return (await response.text()).replace(/"req_[^"]+"/, '"req"');
}

describe("without a valid key", () => {
  const body = { method: "POST", body: `{"url":`, headers: JSON_TYPE };
  const cases: readonly (readonly [string, string, RequestInit])[] = [
    ["B1 no header", "/v1/actions", {}],
    ["B3 unknown key", "/v1/actions", { headers: bearer("og_unknown_0123456789abcdefghij") }],
    ["B4 revoked key", "/v1/actions", { headers: bearer(KEYS.revoked) }],
    ["B5 key in the query", `/v1/actions?access_token=${KEYS.owner}&key=${KEYS.owner}`, {}],
    ["B6 cookie", "/v1/actions", { headers: { cookie: `session=${KEYS.owner}` } }],
    ["B7 bad key, broken JSON", "/v1/actions", { ...body, headers: { ...JSON_TYPE, ...bearer("nonsense") } }],
    ["B8 unknown path", "/v1/nothing/here", {}],
    ["another method", "/v1/actions", { method: "PUT" }],
    ["OPTIONS", "/v1/actions", { method: "OPTIONS" }],
    ["bad query and id", "/v1/actions/..?x=1", {}],
    ["/v1 itself", "/v1", {}],
  ];

  test("every /v1 request is the same 401, and nobody is asked for anything", async () => {
    app.calls.length = 0;
    const bodies = new Set<string>();
    for (const [name, path, init] of cases) {
      const response = await bare(path, init);
      const told = { name, status: response.status, asks: response.headers.get("www-authenticate") };
      expect(told).toEqual({ name, status: 401, asks: "Bearer" });
      bodies.add(await bytesOf(response));
    }
    expect([...bodies]).toHaveLength(1);
    expect(app.calls).toEqual([]);
  });
});

test.each([
  ["B15", "/nothing"],
  ["B15 under /v1", "/v1/nothing"],
  ["B16", "/v1/actions/act_../x"],
  ["B16 slash", "/v1/actions/act_a%2Fb"],
  ["B16 NUL", "/v1/actions/act_a%00"],
  ["no id", `/v1/actions/${"act_".padEnd(70, "a")}`],
  ["a broken percent sign", "/v1/actions/act_%zz"],
  ["two slashes", "/v1/actions//"],
  ["another case", "/V1/actions"],
  ["percent-coded", "/%76%31/actions"],
  ["a name of ours misspelt", "/healthz"],
])("a path that leads nowhere is 404: %s", async (_name, path) => {
  app.calls.length = 0;
  const response = await app.ask(path);
  expect({ status: response.status, code: await codeOf(response) }).toEqual({ status: 404, code: "not_found" });
  expect(app.calls).toEqual([]);
});
