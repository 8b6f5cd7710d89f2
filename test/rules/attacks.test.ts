import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Caller } from "../../src/core/roles.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";

let app: RealServer;

beforeEach(async () => {
  app = await openRealServer({ starts: false });
});

afterEach(() => app[Symbol.asyncDispose]());

interface Answer {
  readonly status: number;
  // Whatever the route answers.
  readonly json: Readonly<Record<string, unknown>>;
}

async function call(method: string, path: string, body?: object, key: string = KEYS.owner): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { status, json } = await app.call(method, path, text, { authorization: `Bearer ${key}` });
  return { status, json: { ...json } };
}

const created = (request: object = {}, key: string = KEYS.agent) =>
  call("POST", "/v1/actions", { url: "https://api.example.com/pay", body: { amount: 7 }, ...request }, key);

const rule = (definition: object = {}) => call("POST", "/v1/rules", { name: "R", effect: "hold", ...definition });

describe("a client of an agent that says that its person agreed", () => {
  /** The agent's key over MCP. */
  async function elicited(): Promise<Caller> {
    const agent = await app.authenticate(`Bearer ${KEYS.agent}`);
    return { ...agent, via: "elicitation", isAgentCall: true };
  }

  test.each(["hold", "refuse"] as const)("approves nothing that a rule has come to %s", async (effect) => {
    const [before, after] = [await created({ approve: true }), await created({ approve: true })];
    const { actionService } = app.engine;
    const caller = await elicited();
    expect((await actionService.approve(caller, String(before.json["id"]), null)).status).toBe("pending");
    await rule({ effect });
    const id = String(after.json["id"]);
    expect(actionService.approve(caller, id, null)).rejects.toMatchObject({ code: "forbidden" });
    expect((await call("GET", `/v1/actions/${id}`)).json["status"]).toBe("awaiting_approval");
    expect((await call("POST", `/v1/actions/${id}/approve`, {}, KEYS.approver)).status).toBe(200);
  });
});
