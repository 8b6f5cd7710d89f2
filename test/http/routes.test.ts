import { afterAll, describe, expect, test } from "bun:test";
import { sucrose } from "elysia/sucrose";
import { ActionJson } from "../../src/api/action-schemas.ts";
import { compile } from "../../src/api/schema-helpers.ts";
import { OPERATIONS } from "../support/operations.ts";
import { ActionPageJson } from "../../src/api/list-schemas.ts";
import { createRoutes, operation } from "../../src/http/operation.ts";
import { anAction } from "../support/factory.ts";
import {
  stubActionService,
  KNOWN_ID,
  KNOWN_BULK_ID,
  KNOWN_CREDENTIAL_REQUEST_ID,
  KNOWN_KEY_ID,
  KNOWN_INVITATION_ID,
  KNOWN_CHANNEL_ID,
  KNOWN_PAUSE_ID,
  KNOWN_OAUTH_CLIENT_ID,
  KNOWN_RULE_ID,
  KNOWN_PERSON_ID,
  KNOWN_TOKEN,
  openStubServer,
  OWN_ORIGIN,
} from "./stub-server.ts";

const app = openStubServer();

afterAll(() => app[Symbol.asyncDispose]());

const action = compile(ActionJson);

const page = compile(ActionPageJson);

const CREATE = { method: "POST", headers: { "content-type": "application/json" } };

const BODIES: Readonly<Record<string, string>> = {
  "POST /v1/actions": `{"url":"https://a.example/"}`,
  "POST /v1/callback-hosts": `{"host":"hooks.example.com"}`,
  "POST /v1/keys": `{"name":"ci","role":"agent"}`,
  "POST /v1/pauses": "{}",
  "POST /v1/bulk": `{"operation":"retry","filter":{"status":["failed"]}}`,
  "POST /v1/approvals": `{"decision":"approve","requests":[{"id":"act_1","run":1,"digest":"x"}]}`,
  "PUT /v1/hosts/{host}": "{}",
  "POST /v1/credentials": `{"name":"stripe-live","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`,
  "POST /v1/credential-requests": `{"host":"a.example","reason":"To call it."}`,
  "POST /v1/credential-requests/{id}/grant": `{"name":"stripe-live","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`,
  "POST /v1/credentials/{name}/test": `{"url":"https://a.example/"}`,
  "PATCH /v1/credentials/{name}": `{"enabled":false}`,
  "POST /v1/oauth-clients": `{"name":"Workflows","redirect_uris":["https://a.example/cb"],"type":"public"}`,
  "POST /v1/rules": `{"name":"All","effect":"hold"}`,
  "PUT /v1/rules": `{"rules":[{"name":"All","effect":"hold"}]}`,
  "POST /v1/rules/reorder": `{"ids":["${KNOWN_RULE_ID}"]}`,
  "POST /v1/rules/dry-run": "{}",
  "PATCH /v1/rules/{id}": `{"effect":"refuse"}`,
  "POST /v1/channels": `{"name":"ops","kind":"slack","url":"https://hooks.example.com/"}`,
  "PATCH /v1/channels/{id}": `{"enabled":false}`,
  "PUT /v1/defaults": "{}",
  "POST /v1/callback-hosts/test": `{"url":"https://hooks.example.com/x"}`,
  "PATCH /v1/first-steps": `{"hidden":true}`,
  "POST /v1/server/test-mail": `{"to":"ann@example.com"}`,
  "POST /v1/signing-secret/verify": `{"headers":{}}`,
  "POST /v1/invitations": `{"email":"bob@example.com","role":"reader"}`,
  "PATCH /v1/people/{id}": `{"role":"approver"}`,
  "PATCH /v1/account": `{"name":"Acme"}`,
  "POST /auth/signup": `{"email":"ann@example.com","password":"12345678"}`,
  "POST /auth/login": `{"email":"ann@example.com","password":"12345678"}`,
};

const QUERIES: Readonly<Record<string, string>> = {
  "GET /v1/signing-secret": "?origin=https://a.example",
  "POST /v1/signing-secret/verify": "?origin=https://a.example",
  "DELETE /v1/callback-hosts": "?host=hooks.example.com",
};

const IDS = {
  "/v1/keys/": KNOWN_KEY_ID,
  "/v1/pauses/": KNOWN_PAUSE_ID,
  "/v1/channels/": KNOWN_CHANNEL_ID,
  "/v1/rules/": KNOWN_RULE_ID,
  "/v1/oauth-clients/": KNOWN_OAUTH_CLIENT_ID,
  "/v1/grants/": "grt_01known",
  "/v1/bulk/": KNOWN_BULK_ID,
  "/v1/credential-requests/": KNOWN_CREDENTIAL_REQUEST_ID,
  "/v1/accounts/": "acc_known",
  "/v1/people/": KNOWN_PERSON_ID,
  "/v1/invitations/": KNOWN_INVITATION_ID,
};

const withId = (path: string) => {
  const id = Object.entries(IDS).find(([start]) => path.startsWith(start))?.[1] ?? KNOWN_ID;
  return path
    .replace("{id}", id)
    .replace("{host}", "a.example")
    .replace("{name}", "stripe-live")
    .replace("{token}", KNOWN_TOKEN);
};

describe("the operations table and the routes", () => {
  test.each(OPERATIONS.map((one) => [`${one.method} ${one.path}`, one] as const))(
    "agree on %s",
    async (_name, { method, path, permission, success }) => {
      const body = BODIES[`${method} ${path}`];
      const query = QUERIES[`${method} ${path}`] ?? "";
      const address = `${withId(path)}${query}`;
      const origin = { origin: OWN_ORIGIN };
      const init: RequestInit =
        body === undefined
          ? { method, headers: origin }
          : { ...CREATE, method, headers: { ...CREATE.headers, ...origin }, body };
      expect(success).toContain((await app.ask(address, init)).status);
      // Whoever holds no key is let in only where nobody is asked.
      expect((await fetch(`${app.url}${address}`, { method })).status === 401).toBe(permission !== null);
    },
  );

  test("know of no other route", async () => {
    for (const path of new Set(OPERATIONS.map((one) => one.path))) {
      const methods = OPERATIONS.filter((one) => one.path === path).map<string>(({ method }) => method);
      // Where a form is refused, its address leads back to the form.
      const leadsBack = path === "/auth/login" || path === "/auth/signup";
      const all = leadsBack ? [...methods, "GET"] : methods;
      const allowed = [...all, ...(all.includes("GET") ? ["HEAD"] : [])].toSorted().join(", ");
      const response = await app.ask(withId(path), { method: "OPTIONS" });
      expect(response.headers.get("allow")).toBe(allowed);
    }
  });
});

describe("an answer", () => {
  test("to a create is 201 with the whole action, and Location says where it is", async () => {
    const response = await app.ask("/v1/actions", {
      ...CREATE,
      body: `{"url":"https://a.example/","body":{"n":1.0}}`,
    });
    expect({ status: response.status, at: response.headers.get("location") }).toEqual({
      status: 201,
      at: `/v1/actions/${KNOWN_ID}`,
    });
    expect(response.headers.get("content-type")).toBe("application/json");
    const text = await response.text();
    expect(text).toContain(`"body":{"n":1.0}`);
    expect(action.issues(JSON.parse(text))).toEqual([]);
  });

  test("to a create that matches is 200, deduplicated, with what differs and without Location", async () => {
    for (const differs of [[], ["url", "retries"]]) {
      const actionService = {
        ...stubActionService([]),
        create: () => Promise.resolve({ action: anAction(), differs }),
      };
      await using other = openStubServer({ actionService });
      const response = await other.ask("/v1/actions", { ...CREATE, body: `{"url":"https://a.example/"}` });
      expect({ status: response.status, at: response.headers.get("location") }).toEqual({ status: 200, at: null });
      const shown: unknown = await response.json();
      expect(shown).toMatchObject({ deduplicated: true, differs });
      expect(action.issues(shown)).toEqual([]);
    }
  });

  test("to a list is a page of actions and the cursor of the next", async () => {
    const shown: unknown = await (await app.ask("/v1/actions")).json();
    expect(page.issues(shown)).toEqual([]);
    expect(shown).toMatchObject({ data: [{ id: KNOWN_ID }], next_cursor: expect.any(String) });
  });

  test.each(["approve", "cancel", "retry"])("to %s is 200 with the whole action", async (verb) => {
    const response = await app.ask(`/v1/actions/${KNOWN_ID}/${verb}`, { method: "POST" });
    expect(response.status).toBe(200);
    expect(action.issues(await response.json())).toEqual([]);
  });

  test("with a secret in it is stored nowhere on its way", async () => {
    const response = await app.ask("/v1/signing-secret?origin=HTTPS://API.example.com:443");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await response.json()).toEqual({ origin: "https://api.example.com", secret: "whsec_test", previous: null });
  });

  test("says the same of an id that is malformed and of one that nobody has, but for what the service calls it", async () => {
    const malformed = await app.ask("/v1/actions/nonsense");
    expect(malformed.status).toBe(404);
    expect(await malformed.text()).not.toContain("nonsense");
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
