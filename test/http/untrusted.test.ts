import { describe, expect, test } from "bun:test";
import { OPERATIONS, type Operation } from "../support/operations.ts";
import { anApiKey } from "../support/factory.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const withId = OPERATIONS.filter(({ path }) => path.includes("{id}"));

const app = await shared(openRealServer({ starts: false }));

const theirs = { authorization: `Bearer ${STRANGER}` };

const bytesOf = (text: string) => text.replace(/"req_[^"]+"/, '"req"');

/** A thing of the owner's in the state that the operation works on, and how to see that nothing happened to it. */
async function thingFor({ id, path }: Operation) {
  const { engine } = app;
  const { accountId } = engine.owner;
  if (path.startsWith("/v1/keys/")) {
    const key = anApiKey({ accountId });
    await engine.store.accounts.addKey(key);
    const find = async () => engine.store.accounts.keyByHash(key.hash);
    return { id: key.id, unknown: "key_nobody", look: find };
  }
  const action = await engine.create({ approve: true, dedupe: null });
  if (id === "retryAction") await engine.actionService.cancel(engine.owner, action.id, null);
  const look = async () => [
    await engine.actionService.get(engine.owner, action.id),
    await engine.actionService.timeline(engine.owner, action.id),
  ];
  return { id: action.id, unknown: "act_nobody", look };
}

/** By method, or operation. */
const BODIES: Readonly<Record<string, string>> = {
  PATCH: `{"role":"reader"}`,
  grantCredentialRequest: `{"name":"a","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`,
};

describe("what is another account's does not exist", () => {
  test.each(withId.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "%s: 404 in the same bytes as for an id that nobody has, and nothing happens",
    async (_name, operation) => {
      const { id, unknown, look } = await thingFor(operation);
      const before = await look();
      const ask = async (one: string) => {
        const path = operation.path.replace("{id}", encodeURIComponent(one));
        // A body is read before anything is looked up.
        const body = BODIES[operation.method] ?? BODIES[operation.id];
        const headers = { ...theirs, ...(body === undefined ? {} : { "content-type": "application/json" }) };
        const response = await app.ask(path, { method: operation.method, headers, ...(body && { body }) });
        return `${response.status} ${String(response.headers.get("content-length"))} ${bytesOf(await response.text())}`;
      };
      const expected = await ask(unknown);
      // Accounts are looked at by the first one alone: to others none of them exists.
      expect(expected).toStartWith(operation.id === "allowAccount" ? "403 " : "404 ");
      expect(await ask(id)).toBe(expected);
      // Nor is one that can't be an id told from it.
      for (const odd of ["nonsense", `${id}\u0000`, `${id}/x`, id.toUpperCase(), "act_", "key_", "x".repeat(300)]) {
        expect(await ask(odd)).toBe(expected);
      }
      expect(await look()).toEqual(before);
    },
  );

  test("in no list, under no key of deduplication and by no cursor", async () => {
    const body = `{"url":"http://127.0.0.1:9/","approve":true,"dedupe":"same"}`;
    const mine = (await app.call("POST", "/v1/actions", body, { "idempotency-key": "same" })).json;
    const other = await app.call("POST", "/v1/actions", body, { ...theirs, "idempotency-key": "same" });
    expect(other.status).toBe(201);
    expect(other.json.id).not.toBe(mine.id);
    const { next_cursor: cursor } = (await app.call("GET", "/v1/actions?limit=1")).json;
    for (const query of ["", "?dedupe=same", "?limit=100", "?status=awaiting_approval"]) {
      const { json } = await app.call("GET", `/v1/actions${query}`, undefined, STRANGER);
      expect(json.data.map(({ id }) => id)).toEqual([other.json.id]);
    }
    if (cursor !== null) {
      const { json } = await app.call("GET", `/v1/actions?cursor=${cursor}`, undefined, STRANGER);
      expect(json.data.map(({ id }) => id)).not.toContain(mine.id);
    }
    const keys = (await app.call("GET", "/v1/keys", undefined, STRANGER)).json.data;
    const ours = new Set((await app.call("GET", "/v1/keys")).json.data.map(({ id }) => id));
    expect(keys).toHaveLength(1);
    expect(keys.filter(({ id }) => ours.has(id))).toEqual([]);
  });
});
