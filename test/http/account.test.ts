import { describe, expect, test } from "bun:test";
import { AccountJson } from "../../src/accounts/account.ts";
import { compile } from "../../src/api/check.ts";
import { ROLES } from "../../src/core/roles.ts";
import { ACCOUNT_NAME_CHARS_MAX } from "../../src/core/limits.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const account = compile(AccountJson);

/** The limits of spec and decisions, as their pages give them. */
const LIMITS = {
  requests_per_second: 100,
  mcp_sessions_max: 20,
  held_actions_max: 10_000,
  event_streams_max: 100,
  request_body_bytes_max: 1_048_576,
  json_depth_max: 64,
  json_members_max: 10_000,
  url_chars_max: 8_192,
  headers_max: 64,
  headers_bytes_max: 16_384,
  retries_default: 3,
  retries_max: 100,
  wait_seconds_default: 30,
  wait_seconds_max: 120,
  dedupe_seconds: 86_400,
  list_limit_max: 100,
  response_body_bytes_max: 262_144,
};

const limited = await shared(openRealServer({ starts: false, rateLimitPerSecond: 100 }));
const app = await shared(openRealServer({ starts: false }));

describe("GET /v1/account", () => {
  test.each(ROLES)("tells a key of role %s whose it is and what it has to keep to", async (role) => {
    const { status, json } = await limited.call("GET", "/v1/account", undefined, KEYS[role]);
    expect(status).toBe(200);
    expect(account.issues(json)).toEqual([]);
    expect(Object(json)).toEqual({
      id: limited.engine.owner.accountId,
      name: null,
      email: null,
      key: { id: expect.stringMatching(/^key_/), name: role, role },
      limits: LIMITS,
    });
  });

  test("has the name that an owner gives it, one for each account, until they take it away", async () => {
    const rename = (name: unknown, key: string = KEYS.owner) => app.call("PATCH", "/v1/account", { name }, key);
    const name = `${"ö".repeat(ACCOUNT_NAME_CHARS_MAX - 8)} Acme 💳`;
    const named = await rename(name);
    expect([named.status, account.issues(named.json)]).toEqual([200, []]);
    expect(named.json).toMatchObject({ id: app.engine.owner.accountId, name });
    for (const role of ["approver", "agent", "reader"] as const) {
      expect((await rename("Evil", KEYS[role])).status).toBe(403);
      const seen = await app.call("GET", "/v1/account", undefined, KEYS[role]);
      expect(seen.json).toMatchObject({ name });
    }
    expect((await app.call("GET", "/v1/account", undefined, STRANGER)).json).toMatchObject({ name: null });
    for (const wrong of [null, " ", "a\nb", "a\u0000", "\ud800", "x".repeat(81), 7, undefined]) {
      const { status, json } = await rename(wrong);
      expect(status, JSON.stringify(wrong)).toBe(400);
      expect(JSON.stringify(json)).toContain('"field":"name"');
    }
    expect((await app.call("GET", "/v1/account")).json).toMatchObject({ name });
    expect((await rename("")).json).toMatchObject({ name: null });
    const { json } = await app.call("GET", "/v1/audit?kind=account_renamed");
    expect(json.data).toMatchObject([
      { kind: "account_renamed", subject: "", detail: { name: null } },
      { kind: "account_renamed", actor: "key:owner", detail: { name } },
    ]);
  });

  test("says null where no rate is set", async () => {
    expect((await app.call("GET", "/v1/account")).json).toMatchObject({ limits: { requests_per_second: null } });
  });
});
