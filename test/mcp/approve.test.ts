import { describe, expect, spyOn, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { requestFor } from "../support/engine.ts";
import { STRANGER } from "../http/real-server.ts";
import { type Answer, actionIn, REVISIONS, codeOf, connect, errorIn } from "./clients.ts";
import { BASE_URL, openServer } from "./test-server.ts";
import { callModern, type McpResponse } from "./wire.ts";
import { shared } from "../support/shared.ts";

const server = await shared(openServer({ starts: false }));

const YES: Answer = () => ({ action: "accept", content: { decision: "approve" } });

const hold = async () => (await server.engine.create({ url: "https://api.example.com/orders/7", approve: true })).id;

const stateOf = async (id: string) => {
  const { status, run, approvedBy } = await server.engine.get(id);
  return { status, run, approvedBy };
};

const HELD = { status: "awaiting_approval", run: 1, approvedBy: null } as const;

describe.each(REVISIONS)("a client of the kind %s that can ask", (kind) => {
  test("asks nobody where the question can't show the whole URL, and says who decides", async () => {
    const { id } = await server.engine.create({ url: `https://api.example.com/${"é".repeat(8_000)}`, approve: true });
    await using agent = await connect(kind, server.mcpUrl, { answer: YES });
    const refused = await agent.call("approve", { id });
    expect(errorIn(refused)).toMatchObject({ code: "forbidden", message: expect.stringContaining("too long") });
    expect(actionIn(refused)).toMatchObject({ id, status: "awaiting_approval", decision: "unavailable" });
    expect(agent.questions).toEqual([]);
    expect(await stateOf(id)).toEqual(HELD);
  });

  test("asks its person, and their approval releases the action", async () => {
    const id = await hold();
    await using agent = await connect(kind, server.mcpUrl, { answer: YES });
    expect(actionIn(await agent.call("approve", { id }))).toMatchObject({ id, status: "pending" });
    expect(agent.questions).toHaveLength(1);
    expect(await stateOf(id)).toEqual({ ...HELD, status: "pending", approvedBy: "mcp:agent" });
    expect((await server.engine.events(id)).at(-1)).toEqual({
      type: "approved",
      actor: "mcp:agent",
      reason: null,
      via: "elicitation",
    });
  });

  test("does not ask about an action held by a key's hold when an agent calls, and does when an owner calls", async () => {
    const { engine } = server;
    const held = async () => {
      const request = requestFor({ url: "https://api.example.com/pay", approve: true });
      return (await engine.actionService.create({ ...engine.owner, role: "agent", hold: "writes" }, request)).action.id;
    };
    const id = await held();
    await using agent = await connect(kind, server.mcpUrl, { answer: YES });
    const answer = await agent.call("approve", { id });
    expect(agent.questions).toEqual([]);
    expect(JSON.stringify(answer)).toContain("unavailable");
    expect(JSON.stringify(answer)).toContain(`${BASE_URL}/approvals`);
    expect(await stateOf(id)).toEqual(HELD);
    for (const key of [KEYS.owner, KEYS.approver]) {
      const other = await held();
      await using person = await connect(kind, server.mcpUrl, { key, answer: YES });
      expect(actionIn(await person.call("approve", { id: other }))).toMatchObject({ status: "pending" });
      expect(person.questions).toHaveLength(1);
    }
  });

  test("asks nobody for a key with a hold or a limit about what an earlier key without them has asked for", async () => {
    const key = async (body: object) => (await server.call("POST", "/v1/keys", { role: "agent", ...body })).json;
    const old = await key({ name: "old", hold: "none" });
    const asked = { url: "https://api.example.com/orders/7", approve: true };
    const { id } = (await server.call("POST", "/v1/actions", asked, old.key)).json;
    for (const limit of [{ hold: "all" }, { hold: "none", hosts: ["other.example.com"] }]) {
      const next = await key({ name: "next", replaces: old.id, ...limit });
      await using agent = await connect(kind, server.mcpUrl, { key: next.key, answer: YES });
      expect(JSON.stringify(await agent.call("approve", { id }))).toContain("unavailable");
      expect(agent.questions).toEqual([]);
      expect(await stateOf(id)).toEqual(HELD);
    }
  });

  test.each([
    ["declined", { action: "decline" }],
    ["closed", { action: "cancel" }],
    ["accepted without a content", { action: "accept" }],
    ["accepted with nothing in it", { action: "accept", content: {} }],
    ["an unknown decision", { action: "accept", content: { decision: "yes" } }],
    ["a decision of another case", { action: "accept", content: { decision: "Approve" } }],
    ["a list", { action: "accept", content: { decision: ["approve"] } }],
    ["more than was asked", { action: "accept", content: { decision: "approve", confirmed: true } }],
    ["a reason that can't be stored", { action: "accept", content: { decision: "approve", reason: "\0" } }],
    ["declined with a yes in it", { action: "decline", content: { decision: "approve" } }],
    ["no action at all", { content: { decision: "approve" } }],
    ["garbage", { decision: "approve" }],
  ])("%s is no decision: the action is still held, and nobody is asked again", async (what, answer) => {
    const id = await hold();
    await using agent = await connect(kind, server.mcpUrl, { answer: () => answer });
    const result = await agent.call("approve", { id }).catch((error: unknown) => String(error));
    expect(agent.questions).toHaveLength(1);
    expect(await stateOf(id)).toEqual(HELD);
    // A client may refuse to send what is no answer; what we get is told as it is.
    if (typeof result === "string") return;
    const decision = /^(declined|closed)/.test(what) ? "declined" : "unanswered";
    expect(actionIn(result)).toMatchObject({ id, status: "awaiting_approval", decision });
  });

  test("asks nobody about an action that is not held or doesn't exist", async () => {
    const { id } = await server.engine.create({ url: "https://api.example.com/" });
    const theirs = await server.engine.actionService.create(
      { ...server.engine.owner, accountId: server.strangerId },
      { ...(await server.engine.get(id)), approve: true },
    );
    await using agent = await connect(kind, server.mcpUrl, { answer: YES });
    expect(errorIn(await agent.call("approve", { id })).code).toBe("not_approvable");
    expect(errorIn(await agent.call("approve", { id: "act_nobody" })).code).toBe("not_found");
    expect(errorIn(await agent.call("approve", { id: theirs.action.id })).code).toBe("not_found");
    expect(agent.questions).toEqual([]);
  });

  test("gets too late where somebody else decides while its person thinks", async () => {
    for (const verb of ["approve", "cancel"] as const) {
      for (const decision of ["approve", "reject"]) {
        const id = await hold();
        const answer = async () => {
          await server.engine.actionService[verb](server.engine.owner, id, null);
          return { action: "accept", content: { decision } };
        };
        await using agent = await connect(kind, server.mcpUrl, { answer });
        expect(errorIn(await agent.call("approve", { id })).code).toMatch(/^not_(approvable|cancellable)$/);
        const { status, approvedBy } = await stateOf(id);
        const won = {
          approve: { status: "pending", approvedBy: "key:owner" },
          cancel: { status: "cancelled", approvedBy: null },
        };
        expect({ status, approvedBy } as unknown).toEqual(won[verb]);
      }
    }
  });

  test("releases nothing where the action begins another run while its person thinks", async () => {
    for (const said of [{ action: "accept", content: { decision: "approve" } }, { action: "decline" }]) {
      const id = await hold();
      const answer = async () => {
        await server.engine.actionService.cancel(server.engine.owner, id, null);
        await server.engine.actionService.retry(server.engine.owner, id, null);
        return said;
      };
      await using agent = await connect(kind, server.mcpUrl, { answer });
      const refused = agent.call("approve", { id });
      if (kind === "modern") expect(await codeOf(refused)).toBe(-32_602);
      else if (said.action === "accept") expect(errorIn(await refused).code).toBe("not_approvable");
      else expect(actionIn(await refused)).not.toHaveProperty("decision", "declined");
      expect(await stateOf(id)).toEqual({ ...HELD, run: 2 });
    }
  });
});

describe.each(REVISIONS)("a client of the kind %s that can't ask", (kind) => {
  test("approves by the role of an owner or approver, with the reason of the call", async () => {
    for (const role of ["owner", "approver"] as const) {
      const id = await hold();
      await using client = await connect(kind, server.mcpUrl, { key: KEYS[role] });
      expect(actionIn(await client.call("approve", { id, reason: "as told" }))).toMatchObject({ status: "pending" });
      const told = { type: "approved", actor: `mcp:${role}`, reason: "as told" };
      expect((await server.engine.events(id)).at(-1) as unknown).toEqual(told);
    }
  });

  test("approves, cancels and retries no other run than the call names, also where it asks", async () => {
    const id = await hold();
    await server.engine.actionService.cancel(server.engine.owner, id, null);
    await server.engine.actionService.retry(server.engine.owner, id, null);
    for (const asks of [{}, { answer: YES }]) {
      await using client = await connect(kind, server.mcpUrl, { key: KEYS.owner, ...asks });
      for (const [tool, code] of [
        ["approve", "not_approvable"],
        ["cancel", "not_cancellable"],
        ["retry", "not_retryable"],
      ] as const)
        expect(errorIn(await client.call(tool, { id, run: 1 })).code).toBe(code);
      expect([client.questions, await stateOf(id)]).toEqual([[], { ...HELD, run: 2 }]);
    }
  });

  test("with a reader's key may only read", async () => {
    const id = await hold();
    await using reader = await connect(kind, server.mcpUrl, { key: KEYS.reader, answer: YES });
    for (const [name, args] of [
      ["create", { url: "https://api.example.com/" }],
      ["approve", { id }],
      ["cancel", { id }],
      ["retry", { id }],
      ["approve", { id: "act_nobody" }],
      ["create", {}],
    ] as const) {
      expect(errorIn(await reader.call(name, args)).code).toBe("forbidden");
    }
    expect(actionIn(await reader.call("get", { id })).status).toBe("awaiting_approval");
    expect(reader.questions).toEqual([]);
    expect(await stateOf(id)).toEqual(HELD);
  });
});

describe.each(REVISIONS)("between question and answer, with a client of the kind %s,", (kind) => {
  test("a key whose role changed while a question is open is checked by the new role", async () => {
    let role: "agent" | "reader" = "agent";
    await using own = await openServer({ starts: false, asCaller: (caller) => ({ ...caller, role }) });
    const { id } = await own.engine.create({ approve: true });
    const answer: Answer = () => {
      role = "reader";
      return { action: "accept", content: { decision: "approve" } };
    };
    await using agent = await connect(kind, own.mcpUrl, { answer });
    expect(errorIn(await agent.call("approve", { id })).code).toBe("forbidden");
    expect(await own.engine.get(id)).toMatchObject({
      status: "awaiting_approval",
      approvedBy: null,
    });
  });
});

test("with AGENT_APPROVAL=off an approver is asked", async () => {
  await using strict = await openServer({ starts: false, agentApproval: "off" });
  const { id } = await strict.engine.create({ approve: true });
  await using approver = await connect("modern", strict.mcpUrl, { key: KEYS.approver, answer: YES });
  expect(actionIn(await approver.call("approve", { id })).status).toBe("pending");
  expect(approver.questions).toHaveLength(1);
});

describe("the state of a question", () => {
  const asked = { capabilities: { elicitation: {} } };
  const ANSWERS = { approval: { action: "accept", content: { decision: "approve" } } };
  const ask = async (id: string, key: string = KEYS.agent): Promise<string> => {
    const { json } = await callModern(server.mcpUrl, "approve", `{"id":"${id}"}`, { ...asked, key });
    expect(json.result).toMatchObject({ resultType: "input_required" });
    return String(json.result?.["requestState"]);
  };
  const answer = (id: string, requestState: unknown, key: string = KEYS.agent): Promise<McpResponse> =>
    callModern(server.mcpUrl, "approve", `{"id":"${id}"}`, {
      ...asked,
      key,
      more: { inputResponses: ANSWERS, ...(requestState === undefined ? {} : { requestState }) },
    });
  const refused = async (said: Promise<McpResponse>, id: string) => {
    expect((await said).json.error?.code).toBe(-32_602);
    expect(await stateOf(id)).toMatchObject({ status: "awaiting_approval", approvedBy: null });
  };

  test("lets one answer count, once", async () => {
    const id = await hold();
    const state = await ask(id);
    expect((await answer(id, state)).json.result).toMatchObject({ structuredContent: { status: "pending" } });
    const again = JSON.stringify((await answer(id, state)).json);
    expect(again).toContain("not_approvable");
  });

  test("is refused where it is missing, altered or no string, and the action is still held", async () => {
    const id = await hold();
    const state = await ask(id);
    const [ends = "", token = ""] = state.split(".");
    const later = String(Number(ends) + 1);
    const forged = [
      undefined,
      "",
      "{}",
      token,
      `${later}.${token}`,
      `${ends}.${token.slice(1)}A`,
      `${ends}.${token}A`,
      ` ${state}`,
      `${state} `,
      state.replace(".", ".."),
    ];
    for (const one of forged) await refused(answer(id, one), id);
    for (const one of [7, null, {}, [state], true]) {
      const { json } = await answer(id, one);
      expect(json.error?.code).toBe(-32_602);
    }
    expect(await stateOf(id)).toEqual(HELD);
  });

  test("expires after ten minutes", async () => {
    const id = await hold();
    const state = await ask(id);
    server.engine.clock.jump(599_999);
    expect((await answer("act_nobody", state)).text).toContain("not_found");
    server.engine.clock.jump(1);
    await refused(answer(id, state), id);
    expect((await answer(id, await ask(id))).json.result).toMatchObject({ structuredContent: { status: "pending" } });
  });

  test("is valid for this action, key, account and run only", async () => {
    const [id, other] = [await hold(), await hold()];
    const state = await ask(id);
    await refused(answer(other, state), other);
    await refused(answer(id, state, KEYS.approver), id);
    await refused(answer(id, await ask(id, KEYS.owner)), id);
    expect((await answer(id, state, STRANGER)).text).toContain("not_found");
    await server.engine.actionService.cancel(server.engine.owner, id, null);
    await server.engine.actionService.retry(server.engine.owner, id, null);
    await refused(answer(id, state), id);
    expect((await answer(id, await ask(id))).json.result).toMatchObject({ structuredContent: { status: "pending" } });
  });

  test("is valid for the request that was asked about, as it was", async () => {
    const id = await hold();
    const state = await ask(id);
    const { owner, store } = server.engine;
    const action = await store.actions.find(owner.accountId, id);
    if (action === null) throw new Error("It is not there.");
    const look = spyOn(store.actions, "find");
    for (const change of [
      { method: "DELETE" },
      { url: "https://api.example.com/orders/8" },
      { headers: { "x-a": "b" } },
      { body: "{}" },
      { callback: "https://app.example.com/" },
      { extras: { bodyKind: "text" } },
    ] as const) {
      look.mockResolvedValue({ ...action, ...change });
      await refused(answer(id, state), id);
    }
    look.mockRestore();
    expect((await answer(id, state)).json.result).toMatchObject({ structuredContent: { status: "pending" } });
  });

  test("without an answer leaves the action held, and nobody is asked again", async () => {
    const id = await hold();
    const requestState = await ask(id);
    for (const inputResponses of [{}, { other: ANSWERS.approval }, { approval: { method: "elicitation/create" } }]) {
      const more = { inputResponses, requestState };
      const { json } = await callModern(server.mcpUrl, "approve", `{"id":"${id}"}`, { ...asked, more });
      expect(json.result).toMatchObject({ resultType: "complete", structuredContent: { status: "awaiting_approval" } });
    }
  });

  test("is refused from a client that doesn't declare elicitation", async () => {
    const id = await hold();
    const requestState = await ask(id);
    const more = { inputResponses: ANSWERS, requestState };
    const { text } = await callModern(server.mcpUrl, "approve", `{"id":"${id}"}`, { more });
    expect(text).toContain("forbidden");
    expect(await stateOf(id)).toEqual(HELD);
  });

  test("holds no secret and no approval link", async () => {
    const id = await hold();
    const { text } = await callModern(server.mcpUrl, "approve", `{"id":"${id}"}`, asked);
    expect(text).not.toContain("/a/");
    expect(text).not.toMatch(/og_|whsec_|key_|acc_/);
  });
});
