import { describe, expect, test } from "bun:test";
import { openRealServer, type RealServer, STRANGER } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { textOf } from "../support/forms.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false })));

const ALL = {
  timeout_ms: 60_000,
  backoff: { base_ms: 1_000, cap_ms: 60_000 },
  give_up_on: [401, "5xx"],
  max_per_second: 0.5,
  max_concurrent: 4,
};

describe("/v1/hosts", () => {
  test("sets everything of a host, lists it to every role of the account, and removes it; each change is audited", async () => {
    const updated_at = app.engine.clock.now().toISOString();
    const put = await app.call("PUT", "/v1/hosts/API.example.com%3A8443", ALL);
    const row = { host: "api.example.com:8443", ...ALL, updated_at, updated_by: "key:owner" };
    expect([put.status, JSON.parse(put.text)]).toEqual([200, row]);
    expect(JSON.parse((await app.call("PUT", "/v1/hosts/b.example:8080", {})).text)).toEqual({
      host: "b.example:8080",
      updated_at,
      updated_by: "key:owner",
    });
    const defaults = { give_up_on: ["4xx"] };
    expect(JSON.parse((await app.call("PUT", "/v1/defaults", defaults)).text)).toEqual(defaults);
    for (const key of [KEYS.owner, KEYS.approver, KEYS.agent, KEYS.reader]) {
      const { status, json } = await app.call("GET", "/v1/hosts", undefined, key);
      expect([status, json]).toMatchObject([200, { data: [row, { host: "b.example:8080" }], defaults }]);
    }
    expect(JSON.parse((await app.call("GET", "/v1/hosts", undefined, STRANGER)).text)).toEqual({
      data: [],
      defaults: {},
    });
    // All of it is replaced.
    expect((await app.call("PUT", "/v1/hosts/api.example.com:8443", { timeout_ms: 1_000 })).json).not.toHaveProperty(
      "backoff",
    );
    expect((await app.call("DELETE", "/v1/hosts/b.example%3A8080")).status).toBe(204);
    expect((await app.call("DELETE", "/v1/hosts/b.example%3A8080")).status).toBe(404);
    const data = (await app.call("GET", "/v1/audit?kind=host_settings_changed")).json.data;
    expect(data).toMatchObject([
      { subject: "b.example:8080", detail: { change: "removed" } },
      { subject: "api.example.com:8443", detail: { change: "set", timeout_ms: 1_000 } },
      { subject: "", detail: { change: "set", give_up_on: "4xx" } },
      { subject: "b.example:8080", detail: { change: "set" } },
      { subject: "api.example.com:8443", detail: { base_ms: 1_000, cap_ms: 60_000, give_up_on: "401, 5xx" } },
    ]);
  });

  test("show agents no secret in the name of who set them, and as many calls at a time as the server allows", async () => {
    const name = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    const { key } = (await app.call("POST", "/v1/keys", { name, role: "owner" })).json;
    expect((await app.call("PUT", "/v1/hosts/a.example", { max_concurrent: 64 }, key)).text).toContain(name);
    const { text } = await app.call("GET", "/v1/hosts", undefined, KEYS.agent);
    expect(text).toContain("a.example");
    expect(text).not.toContain(name);
  });

  test("refuse what is wrong, and change nothing", async () => {
    for (const [method, path, body, field] of [
      ["PUT", "/v1/hosts/a.example", { max_concurrent: 65 }, "max_concurrent"],
      ["PUT", "/v1/hosts/a.example", { timeout_ms: 1, max_per_second: 2 }, "timeout_ms"],
      ["PUT", "/v1/defaults", { max_per_second: 1 }, "max_per_second"],
      ["PUT", "/v1/hosts/a.example:443", {}, null],
      ["PUT", "/v1/hosts/%2A.example", {}, null],
      ["DELETE", "/v1/hosts/nobody.example", undefined, null],
    ] as const) {
      const refused = await app.call(method, path, body);
      const expected = field === null ? [404, {}] : [400, { error: { details: [{ field }] } }];
      expect([refused.status, refused.json], path).toMatchObject(expected);
    }
    // As people type it.
    const { json } = await app.call("PUT", "/v1/hosts/https%3A%2F%2Fapi.example.com", { max_per_second: 5 });
    expect(json.error.message).toBe(
      "There is no such host. Must be a host name or an IP address, with or without a port, like api.example.com or 10.0.0.7:8080.",
    );
    expect(JSON.parse((await app.call("GET", "/v1/hosts")).text)).toEqual({ data: [], defaults: {} });
  });
});

test("for people, without script, pages set up a host and all hosts, show a refused form again, and remove", async () => {
  const ann = await signedIn(app);
  const hidden = await ann.hiddenOf("/settings/hosts");
  expect(await ann.pageOf("/settings")).toContain('href="/settings/hosts"');
  expect(await ann.pageOf("/settings/hosts/edit?host=A.example")).toContain("a.example");
  const empty = { ...hidden, timeout_ms: "", "backoff.base_ms": "", "backoff.cap_ms": "", give_up_on: "" };
  const fields = {
    ...empty,
    host: "a.example",
    timeout_ms: "60000",
    "backoff.base_ms": "100",
    "backoff.cap_ms": "1 s",
  };
  const refused = await ann.send("/settings/hosts", { ...fields, give_up_on: "<b>", max_per_second: "0.5" });
  const html = await refused.text();
  expect(refused.status).toBe(400);
  expect(html).toContain("Must be a status from 300 to 599");
  expect(html).toContain("&lt;b&gt;");
  expect(html).toContain('value="60000"');
  const saved = await ann.send("/settings/hosts", { ...fields, give_up_on: "401, 5xx", max_per_second: "0.5" });
  expect([saved.status, saved.headers.get("location")]).toEqual([303, "/settings/hosts"]);
  // Of two at once, one is told that it was late.
  const both = await Promise.all(
    ["1000", "2000"].map((timeout_ms) => ann.send("/settings/hosts", { ...empty, host: "", timeout_ms })),
  );
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([303, 400]));
  const { version = "" } = await ann.hiddenOf("/settings/hosts/defaults");
  await ann.send("/settings/hosts", { ...empty, version, host: "", timeout_ms: "2000" });
  // Its form was opened before somebody saved another one.
  const late = await ann.send("/settings/hosts", { ...fields, give_up_on: "" });
  expect([late.status, textOf(await late.text())]).toEqual([400, expect.stringContaining("Someone has changed these")]);
  const { json } = await app.call("GET", "/v1/hosts");
  expect(json).toMatchObject({
    data: [
      {
        host: "a.example",
        timeout_ms: 60_000,
        backoff: { base_ms: 100, cap_ms: 1_000 },
        give_up_on: [401, "5xx"],
        max_per_second: 0.5,
      },
    ],
    defaults: { timeout_ms: 2_000 },
  });
  // What a field would set if it were empty.
  expect(await ann.pageOf("/settings/hosts/edit?host=b.example")).toContain('placeholder="2 s"');
  expect(await ann.pageOf("/settings/hosts/edit?host=a.example")).toContain('value="1 min"');
  const page = await ann.pageOf("/settings/hosts");
  expect(textOf(page)).toContain("Give up on 401, 5xx · Calls a second 0.5");
  expect(await ann.pageOf("/settings/hosts/edit?host=a.example")).toContain('value="401, 5xx"');
  const unknown = await ann.context("/settings/hosts/edit?host=a.example:443");
  expect(unknown.status).toBe(400);
  expect((await ann.send("/settings/hosts/remove", { ...hidden, host: "a.example" })).status).toBe(303);
  expect((await app.call("GET", "/v1/hosts")).json.data).toEqual([]);
});
