import { describe, expect, test } from "bun:test";
import { compile } from "../../src/api/check.ts";
import { CreatedKeyJson, KeyListJson } from "../../src/accounts/key-schemas.ts";
import { LIVE_KEYS_MAX } from "../../src/core/limits.ts";
import { HOLDS, ROLES } from "../../src/core/roles.ts";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { anApiKey, later, NOON } from "../support/factory.ts";
import { openRealServer } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const created = compile(CreatedKeyJson);

const list = compile(KeyListJson);

const app = await shared(openRealServer({ starts: false }));

const make = async (body: object) => app.call("POST", "/v1/keys", { name: "ci", role: "agent", ...body });

describe("POST /v1/keys", () => {
  const kinds = ROLES.flatMap((role) => HOLDS.map((hold) => [role, hold] as const));

  test.each(kinds)("makes a key of role %s and hold %s, and shows it this once", async (role, hold) => {
    const { status, text, json, headers } = await make({ name: 'billing, "it\'s" <b>', role, hold });
    expect([status, headers.get("cache-control")]).toEqual([201, "no-store"]);
    const shown: unknown = json;
    if (!created.accepts(shown)) throw new Error(JSON.stringify(created.issues(shown)));
    const { key, id, ...rest } = shown;
    expect(isWellFormedApiKey(key)).toBe(true);
    expect(rest).toEqual({
      name: 'billing, "it\'s" <b>',
      role,
      hold,
      ...(role === "agent" ? { scope: "own" as const } : {}),
      replaces: null,
      last4: key.slice(-4),
      created_at: app.engine.clock.now().toISOString(),
      last_used_at: null,
      created_by: "key:owner",
      revoked_at: null,
      revoked_by: null,
    });
    expect(text.split(key)).toHaveLength(2);
    // Nowhere else: neither in a list nor in a line of the log, nor its hash.
    const everywhere = (await app.call("GET", "/v1/keys")).text + JSON.stringify([app.lines, app.engine.lines]);
    expect(everywhere).not.toContain(key);
    expect(everywhere).not.toContain(app.engine.secrets.hash(key));
    const whoAmI = await app.call("GET", "/v1/account", undefined, key);
    expect(whoAmI.json).toMatchObject({ key: { id, name: rest.name, role } });
  });

  test("refuses one key too many, and takes it when another is revoked", async () => {
    await using full = await openRealServer({ starts: false });
    const { accounts } = full.engine.store;
    const { accountId } = full.engine.owner;
    const more = LIVE_KEYS_MAX - (await accounts.keys(accountId, LIVE_KEYS_MAX)).length;
    const keys = Array.from({ length: more }, () => anApiKey({ accountId }));
    await Promise.all(keys.map((key) => accounts.addKey(key)));
    const one = () => full.call("POST", "/v1/keys", `{"name":"a","role":"agent"}`);
    expect(await one()).toMatchObject({ status: 409, json: { error: { code: "too_many_keys" } } });
    await full.call("DELETE", `/v1/keys/${keys[0]?.id ?? ""}`);
    expect((await one()).status).toBe(201);
  });
});

test("GET /v1/keys lists the account's keys, live ones first, with when they were used and revoked", async () => {
  await using other = await openRealServer({ starts: false });
  const { store, owner, clock } = other.engine;
  const made = { accountId: owner.accountId, createdAt: later(1), revokedAt: later(2), lastUsedAt: NOON };
  const revoked = anApiKey({ ...made, name: "gone", role: "reader", hold: "all", last4: "wxyz" });
  await store.accounts.addKey(revoked);
  const { json } = await other.call("GET", "/v1/keys");
  expect(list.issues(json)).toEqual([]);
  // Two that the first start made, four of the test's own, and the revoked one; none of the stranger.
  expect(json.data).toHaveLength(7);
  expect(json.data.at(-1)).toEqual(
    expect.objectContaining({
      id: revoked.id,
      name: "gone",
      role: "reader",
      hold: "all",
      replaces: null,
      last4: "wxyz",
      created_at: later(1).toISOString(),
      last_used_at: NOON.toISOString(),
      revoked_at: later(2).toISOString(),
      created_by: null,
      revoked_by: null,
    }),
  );
  expect(Object.keys(json.data.at(-1) ?? {})).toHaveLength(15);
  expect(json.data).toContainEqual(expect.objectContaining({ role: "owner", last_used_at: clock.now().toISOString() }));
});
