import { describe, expect, test } from "bun:test";
import { OPERATIONS, type Operation } from "../support/operations.ts";
import { aBulkJob, aCredential, aCredentialRequest, anApiKey, anAuditEntry } from "../support/factory.ts";
import { broken } from "../support/promised.ts";
import { openRealServer, type RealServer, tablesIn } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] as const;

const operations = OPERATIONS;

const byPath = [...Map.groupBy(operations, ({ path }) => path)];

/** But for the stream, which has no end to wait for: `events.test.ts` asks for its head. */
const gets = operations.filter(({ method, id }) => method === "GET" && id !== "streamEvents");

/** Over a bare socket, since no client sends every method. */
async function ask(app: RealServer, method: string, path: string) {
  const headers = [`Authorization: Bearer ${KEYS.owner}`, "Origin: https://evil.example", "Connection: close"];
  const { text } = await exchange(app.port, [request(`${method} ${path}`, headers)]);
  return readAnswer(text);
}

// Nothing is dispatched: only a request can change a row.
const app = await shared(openRealServer({ starts: false }));
const { engine } = app;
const key = anApiKey({ accountId: engine.owner.accountId });
await engine.store.accounts.addKey(key);
const job = aBulkJob({ accountId: engine.owner.accountId });
await engine.store.bulk.add(job, [], anAuditEntry({ kind: "bulk_started" }));
const credential = aCredential({ accountId: engine.owner.accountId });
await engine.store.credentials.add(credential, anAuditEntry({ kind: "credential_added" }));
const asked = aCredentialRequest({ accountId: engine.owner.accountId });
await engine.store.credentialRequests.ask(asked, engine.clock.now(), [], anAuditEntry());
const ids = { action: (await engine.create({ approve: true })).id, key: key.id, bulk: job.id, request: asked.id };

const at = (path: string) =>
  path
    .replace("/v1/keys/{id}", `/v1/keys/${ids.key}`)
    .replace("/v1/bulk/{id}", `/v1/bulk/${ids.bulk}`)
    .replace("/v1/credential-requests/{id}", `/v1/credential-requests/${ids.request}`)
    .replace("{id}", ids.action)
    .replace("{name}", "stripe-live")
    .replace("/r/{token}", () => app.engine.receiptUrl(ids.action));

const query = ({ id }: Operation) => (id === "getSigningSecret" ? "?origin=https://a.example" : "");

/** Where a form is refused, its address leads back to the form. */
const LEADS_BACK: ReadonlySet<string> = new Set(["/auth/login", "/auth/signup"]);

const allowed = (same: readonly Operation[]) => {
  const leadsBack = same.some(({ path }) => LEADS_BACK.has(path));
  const methods = [...same.map<string>(({ method }) => method), ...(leadsBack ? ["GET"] : [])];
  return [...methods, ...(methods.includes("GET") ? ["HEAD"] : [])].toSorted();
};

describe("every path and every method", () => {
  test.each(byPath)("%s takes what it has, and names it to whoever asks for another", async (path, same) => {
    const allow = allowed(same).join(", ");
    const before = tablesIn(app.engine.folder);
    for (const method of METHODS.filter((one) => !allowed(same).includes(one))) {
      const answer = await ask(app, method, at(path));
      const status = method === "OPTIONS" ? 204 : 405;
      expect({ status: answer.status, allow: answer.headers.get("allow") }, method).toEqual({ status, allow });
      const text = method === "HEAD" ? null : answer.body;
      expect(broken({ method, path: at(path), status, headers: answer.headers, text })).toEqual([]);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    expect(tablesIn(app.engine.folder)).toEqual(before);
  });

  test("a path that is none is 404, whatever the method", async () => {
    // An empty segment is no parameter.
    for (const path of ["/v1/nothing", "/v1/actions//cancel", "/v1/actions//", "//v1/actions", "/r//"])
      for (const method of METHODS) expect((await ask(app, method, path)).status, `${method} ${path}`).toBe(404);
  });
});

describe("where GET is", () => {
  const cases = gets.map((operation) => [operation.path, operation] as const);

  test.each(cases)("HEAD of %s is its head and nothing else, and changes nothing", async (path, operation) => {
    const address = at(path) + query(operation);
    // What has happened before is counted by whoever looks first: by the job otherwise.
    await app.engine.countActivity.upToNow();
    const before = tablesIn(app.engine.folder);
    const head = await ask(app, "HEAD", address);
    expect(tablesIn(app.engine.folder)).toEqual(before);
    const get = await ask(app, "GET", address);
    expect({ status: head.status, body: head.body }).toEqual({ status: 200, body: "" });
    const told = (headers: Headers) => [...headers.keys()].filter((name) => name !== "date").toSorted();
    expect(told(head.headers)).toEqual(told(get.headers));
    // Numbers move from one look to the next.
    if (path !== "/metrics") expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
    // Of a secret that was shown there is an entry, and of nothing else.
    const { audit, ...rest } = tablesIn(app.engine.folder);
    expect(rest).toEqual(Object.fromEntries(Object.entries(before).filter(([name]) => name !== "audit")));
    expect((audit ?? []).length - (before["audit"] ?? []).length).toBe(path === "/v1/signing-secret" ? 1 : 0);
  });
});

test("a trailing slash makes no difference, and two do", async () => {
  const bytes = async (address: string) => {
    const { status, body } = await ask(app, "GET", address);
    return `${status} ${body.replace(/"req_[^"]+"/, '"req"')}`;
  };
  for (const path of ["/v1/actions", "/v1/actions/{id}", "/v1/actions/{id}/timeline", "/r/{token}"].map(at)) {
    const plain = await bytes(path);
    expect(plain).toStartWith("200");
    expect(await bytes(`${path}/`)).toBe(plain);
    expect(await bytes(`${path}//`)).toStartWith("404");
  }
  const made = await app.call("POST", "/v1/actions/", `{"url":"http://127.0.0.1:9/","approve":true}`);
  expect(made.status).toBe(201);
  expect((await app.call("POST", `/v1/actions/${made.json.id}/cancel/`)).status).toBe(200);
  const refused = await ask(app, "PUT", "/v1/actions/");
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, POST"]);
});
