import { describe, expect, test } from "bun:test";
import type { ActionRequest } from "../../src/core/action.ts";
import type { Caller } from "../../src/core/roles.ts";
import { type Engine, openEngine, requestFor } from "../support/engine.ts";
import { as, refusalOf } from "./callers.ts";

const HELD = { approve: true, body: '{"amount":5}' };

const agentOf = ({ owner }: Engine): Caller => ({ ...as("agent", owner), hold: "writes" });

const ask = async (engine: Engine, reason: string | null = null, request: Partial<ActionRequest> = {}) =>
  (await engine.actionService.create(agentOf(engine), requestFor({ ...HELD, ...request }), { reason })).action;

const reject = ({ actionService, owner }: Engine, id: string) =>
  actionService.cancel(as("approver", owner), id, "Not today.");

/** A request of an agent that a person has rejected. */
async function rejected(engine: Engine): Promise<string> {
  const { id } = await ask(engine);
  await reject(engine, id);
  return id;
}

describe("a request that a person rejected", () => {
  test("that somebody retries without a reason is not shown with the reason of another question", async () => {
    await using engine = await openEngine({ starts: false });
    const id = await rejected(engine);
    await ask(engine, "It is due.");
    const held = await engine.actionService.retry(engine.owner, id, null);
    const { reason, rejections } = await engine.actionService.readHistory(held);
    expect(reason).toBeNull();
    expect(rejections.map(({ reason: why }) => why)).toEqual(["Not today.", "It is due."]);
  });
});

describe("what counts as a rejection", () => {
  test("is a person's, also by a question that a client put to them; not an agent that takes back what it asked for", async () => {
    await using engine = await openEngine({ starts: false });
    const { actionService, owner } = engine;
    const plain = as("agent", owner);
    const askPlainly = async (body: string) =>
      (await actionService.create(plain, requestFor({ approve: true, body }))).action.id;
    const answers: readonly (readonly [Caller, boolean])[] = [
      [plain, false],
      [as("approver", owner), true],
      [owner, true],
      [{ ...plain, via: "elicitation" }, true],
    ];
    for (const [at, [caller, counts]] of answers.entries()) {
      const body = `{"n":${at}}`;
      await actionService.cancel(caller, await askPlainly(body), null);
      const refusal = await refusalOf(askPlainly(body));
      expect(refusal?.code ?? null, String(at)).toEqual(counts ? "invalid_request" : null);
    }
  });

  test("is also what a person takes back before it was sent", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await ask(engine);
    await engine.actionService.approve(engine.owner, id, null);
    await engine.actionService.cancel(engine.owner, id, null);
    expect((await refusalOf(ask(engine)))?.code).toBe("invalid_request");
    expect((await ask(engine, "Now?")).status).toBe("awaiting_approval");
  });

  test("counts for what its key may send without asking", async () => {
    await using engine = await openEngine({ starts: false });
    const { actionService, owner } = engine;
    const key = { ...as("agent", owner), hold: "writes" } as const;
    const { action } = await actionService.create(key, requestFor({ method: "GET", approve: true }));
    await actionService.cancel(owner, action.id, null);
    const unheld = actionService.create(key, requestFor({ method: "GET" }));
    expect((await refusalOf(unheld))?.code).toBe("invalid_request");
  });

  test("does not end with an answer that an agent's own client brings", async () => {
    await using engine = await openEngine({ starts: false });
    const { actionService, owner } = engine;
    const plain = as("agent", owner);
    const askPlainly = async (reason: string | null) =>
      (await actionService.create(plain, requestFor({ approve: true }), { reason })).action.id;
    await actionService.cancel(owner, await askPlainly(null), null);
    await actionService.approve({ ...plain, via: "elicitation" }, await askPlainly("Now?"), null);
    expect((await refusalOf(askPlainly(null)))?.code).toBe("invalid_request");
  });
});
