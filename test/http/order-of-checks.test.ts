import { afterAll, describe, expect, test } from "bun:test";
import { OPERATIONS } from "../support/operations.ts";
import { KEYS, openStubServer } from "./stub-server.ts";

const app = openStubServer();

afterAll(() => app[Symbol.asyncDispose]());

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
    ["B2 Bearer alone", "/v1/actions", { headers: { authorization: "Bearer " } }],
    ["B3 unknown key", "/v1/actions", { headers: bearer("og_unknown_0123456789abcdefghij") }],
    ["B4 revoked key", "/v1/actions", { headers: bearer(KEYS.revoked) }],
    ["B5 key in the query", `/v1/actions?access_token=${KEYS.owner}&key=${KEYS.owner}`, {}],
    ["B6 cookie", "/v1/actions", { headers: { cookie: `session=${KEYS.owner}` } }],
    ["B7 bad key, broken JSON", "/v1/actions", { ...body, headers: { ...JSON_TYPE, ...bearer("nonsense") } }],
    ["B8 unknown path", "/v1/nothing/here", {}],
    ["two keys", "/v1/actions", { headers: { authorization: `Bearer ${KEYS.owner}, Bearer ${KEYS.agent}` } }],
    ["basic", "/v1/actions", { headers: { authorization: `Basic ${btoa(`${KEYS.owner}:`)}` } }],
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

  test("the 401 says how to get a key", async () => {
    const text = await (await bare("/v1/actions")).text();
    expect(text).toContain("Authorization: Bearer <key>");
    expect(text).toContain("first start");
  });

  test("system routes answer all the same", async () => {
    for (const path of ["/health", "/ready", "/metrics"]) expect((await bare(path)).status).toBe(200);
  });
});

const GRANTED = `{"name":"a","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`;

describe("a path", () => {
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
  ])("that leads nowhere is 404: %s", async (_name, path) => {
    app.calls.length = 0;
    const response = await app.ask(path);
    expect({ status: response.status, code: await codeOf(response) }).toEqual({ status: 404, code: "not_found" });
    expect(app.calls).toEqual([]);
  });

  const withId = OPERATIONS.filter(({ path }) => path.includes("{id}"));

  test.each(withId.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "whose id can't be one is 404 before anybody looks for it: %s",
    async (_name, { method, path }) => {
      app.calls.length = 0;
      const kinds = {
        "/v1/keys/": "key_",
        "/v1/pauses/": "pau_",
        "/v1/accounts/": "acc_",
        "/v1/people/": "per_",
        "/v1/invitations/": "inv_",
        "/v1/bulk/": "blk_",
        "/v1/channels/": "chn_",
        "/v1/rules/": "rul_",
        "/v1/oauth-clients/": "ocl_",
        "/v1/grants/": "grt_",
        "/v1/credential-requests/": "crq_",
      };
      // A body is read before the id is.
      const bodies = { "/v1/people/": `{"role":"reader"}`, "/v1/rules/": `{"effect":"hold"}` };
      const body = Object.entries(bodies).find(([start]) => path.startsWith(start))?.[1] ?? `{"enabled":false}`;
      const sent = path.endsWith("/grant") ? GRANTED : body;
      const needsBody = method === "PATCH" || sent === GRANTED;
      const init = needsBody ? { method, body: sent, headers: JSON_TYPE } : { method };
      const kind = Object.entries(kinds).find(([start]) => path.startsWith(start))?.[1] ?? "act_";
      const odd = ["", "a".repeat(65), "a.b", "a%2Fb", "a%00", "%C3%A9", "a%20", "a%0A", "a~b", "%ED%A0%80"];
      const ids = [...odd.map((rest) => kind + rest), kind.slice(0, -1), kind.toUpperCase() + "a", "x", "%2e%2e", "1"];
      for (const id of ids) {
        const response = await app.ask(path.replace("{id}", id), init);
        expect({ id, status: response.status, code: await codeOf(response) }).toEqual({
          id,
          status: 404,
          code: "not_found",
        });
      }
      expect(app.calls).toEqual([]);
      // One that can be is looked for.
      for (const rest of ["a", "a".repeat(64), "A-z_0"]) await app.ask(path.replace("{id}", kind + rest), init);
      expect(app.calls).toHaveLength(3);
    },
  );

  test("answers OPTIONS with 204 and Allow, and no browser gets a yes", async () => {
    const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const response = await app.ask("/v1/actions", { method: "OPTIONS", headers });
    expect({ status: response.status, allow: response.headers.get("allow") }).toEqual({
      status: 204,
      allow: "GET, HEAD, POST",
    });
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect((await app.ask("/nothing", { method: "OPTIONS" })).status).toBe(404);
  });
});
