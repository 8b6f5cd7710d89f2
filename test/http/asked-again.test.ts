import { describe, expect, test } from "bun:test";
import { openServer } from "../mcp/test-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const NO_TARGET = "http://127.0.0.1:9/";

const server = await shared(openServer({ starts: false }));

let requests = 0;

/** A request that nobody has asked for before. */
const fresh = (members: object = {}) => {
  requests += 1;
  return { url: `${NO_TARGET}${requests}`, approve: true, ...members };
};

const post = (path: string, body: object, key: keyof typeof KEYS = "agent") =>
  server.call("POST", path, body, KEYS[key]);

const create = async (request: object) => (await post("/v1/actions", request)).json.id;

const stateOf = async (id: string) => {
  const { status, run } = await server.engine.get(id);
  return { status, run };
};

/** An action that was rejected in its first run, and awaits approval in its second. */
async function inSecondRun(): Promise<string> {
  const id = await create(fresh());
  await post(`/v1/actions/${id}/cancel`, { run: 1 }, "approver");
  await post(`/v1/actions/${id}/retry`, { reason: "It is due." });
  expect(await stateOf(id)).toEqual({ status: "awaiting_approval", run: 2 });
  return id;
}

describe("over REST a request that was rejected", () => {
  test("is asked for again twice, with a reason, and then refused with when and by whom it can be sent", async () => {
    const request = fresh();
    const id = await create(request);
    await post(`/v1/actions/${id}/cancel`, {}, "approver");
    for (const [path, body] of [
      ["/v1/actions", request],
      [`/v1/actions/${id}/retry`, {}],
    ] as const) {
      const { status, json } = await post(path, body);
      expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_request" });
      expect(json.error.details).toMatchObject([{ field: "reason" }]);
      expect(json.error.details?.[0]?.message).toContain("a person rejected this request at 2026-01-01T00:00:00.000Z");
    }
    expect((await post(`/v1/actions/${id}/retry`, { reason: "👎".repeat(1_000) })).json).toMatchObject({ run: 2 });
    expect((await post("/v1/actions", { ...request, reason: "Again." })).status).toBe(201);
    for (const [path, body, status, code] of [
      ["/v1/actions", { ...request, reason: "More." }, 403, "forbidden"],
      [`/v1/actions/${id}/retry`, { reason: "More." }, 409, "not_retryable"],
    ] as const) {
      await post(`/v1/actions/${id}/cancel`, {}, "approver");
      const { status: answered, json } = await post(path, body);
      expect({ status: answered, code: json.error.code }).toEqual({ status, code });
      expect(json.error.message).toContain("from 2026-01-02T00:00:00.000Z; an owner key");
    }
    expect((await post(`/v1/actions/${id}/retry`, {}, "owner")).json).toMatchObject({ run: 3 });
  });
});

describe("an approval, a rejection or a retry of run 1", () => {
  test("does nothing to run 2 over REST, and says so", async () => {
    const id = await inSecondRun();
    for (const [verb, code] of [
      ["approve", "not_approvable"],
      ["cancel", "not_cancellable"],
      ["retry", "not_retryable"],
    ] as const) {
      const { status, json } = await post(`/v1/actions/${id}/${verb}`, { run: 1 }, "owner");
      expect({ status, code: json.error.code }).toEqual({ status: 409, code });
      expect(json.error.message).toContain("is for run 1 of action");
    }
    expect(await stateOf(id)).toEqual({ status: "awaiting_approval", run: 2 });
    expect((await post(`/v1/actions/${id}/approve`, { run: 2 }, "owner")).json).toMatchObject({ status: "pending" });
    // What waits to be sent can be cancelled by its run too.
    expect((await post(`/v1/actions/${id}/cancel`, { run: 2 }, "owner")).json).toMatchObject({ status: "cancelled" });
    for (const status of [200, 409])
      expect((await post(`/v1/actions/${id}/retry`, { run: 2 }, "owner")).status).toBe(status);
    expect(await stateOf(id)).toEqual({ status: "awaiting_approval", run: 3 });
  });
});
