import { describe, expect, test } from "bun:test";
import { NO_SEARCH } from "../../src/core/search.ts";
import { setImmediate as turn } from "node:timers/promises";
import type { ActionStatus } from "../../src/core/action.ts";
import { mayDo, type Permission, ROLES } from "../../src/core/roles.ts";
import type { Operation } from "../../src/core/status.ts";
import type { Store } from "../../src/core/store.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { anotherOwner, as, refusalOf } from "../actions/callers.ts";
import { actionOf, answering, holding } from "../actions/senders.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;

const UNKNOWN_ID = "act_00000000000000000000000000";

describe("an approve", () => {
  test("releases a held action at once, says who and when, and it is sent", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ approve: true });
    engine.clock.advance(1_000);
    const approver = as("approver", engine.owner);
    const approved = await engine.actionService.approve(approver, id, "looks right");
    expect(approved).toMatchObject({
      status: "pending",
      attempts: 0,
      dueAt: engine.clock.now(),
      approvedAt: engine.clock.now(),
      approvedBy: "key:approver",
    });
    const done = await engine.saw(id, { status: "completed" });
    expect([done.approvedAt, done.approvedBy]).toEqual([approved.approvedAt, "key:approver"]);
    expect(sender.sent).toHaveLength(1);
    expect(await engine.events(id)).toContainEqual({
      type: "approved",
      actor: "key:approver",
      reason: "looks right",
    });
  });
});

describe("a decision on what was seen", () => {
  test("is written down with the way that it came", async () => {
    await using engine = await openEngine({ starts: false });
    const agent = { ...as("agent", engine.owner), scope: "account", via: "elicitation" } as const;
    const [one, other] = [await engine.create({ approve: true }), await engine.create({ approve: true })];
    await engine.actionService.approve(agent, one.id, "yes", { run: one.run, isHeld: true });
    await engine.actionService.cancel(agent, other.id, null, { run: other.run, isHeld: true });
    const told = { actor: "key:agent", via: "elicitation" } as const;
    expect((await engine.events(one.id)).at(-1)).toEqual({ type: "approved", reason: "yes", ...told });
    expect((await engine.events(other.id)).at(-1)).toEqual({ type: "rejected", reason: null, ...told });
  });

  test("does not release another run than the one that was seen", async () => {
    await using engine = await openEngine({ starts: false });
    const seen = await engine.create({ approve: true });
    await engine.actionService.cancel(engine.owner, seen.id, null);
    await engine.actionService.retry(engine.owner, seen.id, null);
    for (const verb of ["approve", "cancel"] as const) {
      const refusal = await refusalOf(
        engine.actionService[verb](engine.owner, seen.id, null, { run: seen.run, isHeld: true }),
      );
      expect(refusal).toMatchObject({ code: verb === "approve" ? "not_approvable" : "not_cancellable" });
      expect(refusal?.message).toContain("no longer awaits the decision that was asked for");
    }
    expect(await engine.actionService.get(engine.owner, seen.id)).toMatchObject({
      status: "awaiting_approval",
      run: 2,
    });
  });
});

describe("a cancel", () => {
  test("of a held action is a rejection, and nothing is ever sent", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ approve: true });
    const cancelled = await engine.actionService.cancel(engine.owner, id, "no");
    expect(cancelled).toMatchObject({
      status: "cancelled",
      finishedAt: engine.clock.now(),
      startedAt: null,
      approvedAt: null,
    });
    expect((await engine.events(id)).at(-1)).toEqual({ type: "rejected", actor: "key:owner", reason: "no" });
    engine.clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toEqual([]);
  });

  test("between two attempts ends the action: what was due is not sent", async () => {
    const sender = answering(answered(503));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await engine.saw(id, { status: "pending", attempts: 1 });
    const cancelled = await engine.actionService.cancel(engine.owner, id, null);
    expect(cancelled).toMatchObject({ status: "cancelled", attempts: 1, dueAt: null, result: { responseCode: 503 } });
    expect((await engine.events(id)).at(-1)).toEqual({ type: "cancelled", actor: "key:owner", reason: null });
    engine.clock.advance(60_000);
    await turn();
    expect(sender.sent).toHaveLength(1);
    expect(await engine.actionService.get(engine.owner, id)).toEqual(cancelled);
  });
});

describe("a decision that comes at the wrong time", () => {
  const CODES = { approve: "not_approvable", cancel: "not_cancellable", retry: "not_retryable" } as const;
  const ALLOWED: Readonly<Record<ActionStatus, readonly Operation[]>> = {
    pending: ["cancel"],
    active: [],
    awaiting_approval: ["approve", "cancel"],
    completed: [],
    failed: ["retry"],
    cancelled: ["retry"],
  };

  test.each(Object.entries(ALLOWED))(
    "on what is %s is refused and changes nothing, unless it is %p",
    async (status, allowed) => {
      const { sender, began, end } = holding();
      await using engine = await openEngine({ sender, starts: status !== "pending" });
      const { actionService, owner } = engine;
      const { id } = await engine.create({
        retries: 1,
        approve: status === "awaiting_approval" || status === "cancelled",
      });
      if (status === "cancelled") await actionService.cancel(owner, id, null);
      if (status === "active" || status === "completed" || status === "failed") await began;
      if (status === "completed" || status === "failed") end(answered(status === "failed" ? 500 : 200));
      // Safe: the names of the table are statuses.
      const before = await engine.saw(id, { status: status as ActionStatus });
      const told = await engine.events(id);
      for (const operation of ["approve", "cancel", "retry"] as const) {
        if (allowed.includes(operation)) continue;
        const refusal = await refusalOf(actionService[operation](owner, id, "please"));
        expect(refusal).toMatchObject({ code: CODES[operation] });
        expect(refusal?.message).toContain(`Action ${id} is ${status} `);
      }
      expect(await actionService.get(owner, id)).toEqual(before);
      expect(await engine.events(id)).toEqual(told);
      end(answered(200));
    },
  );
});

describe("a decision about a run that was looked at", () => {
  test("is taken while that run is held", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    const { id } = await engine.create({ approve: true });
    expect((await engine.actionService.approve(engine.owner, id, null, { run: 1, isHeld: true })).status).toBe(
      "pending",
    );
  });

  test("does not cancel what another has approved meanwhile", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({ approve: true });
    await engine.actionService.approve(engine.owner, id, null);
    const refusal = await refusalOf(engine.actionService.cancel(engine.owner, id, "no", { run: 1, isHeld: true }));
    expect(refusal).toEqual({
      code: "not_cancellable",
      message: `Action ${id} no longer awaits the decision that was asked for; it is pending by now.`,
    });
    expect((await engine.actionService.get(engine.owner, id)).status).toBe("pending");
  });

  test("does not release the next run", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({ approve: true });
    await engine.actionService.cancel(engine.owner, id, null);
    await engine.actionService.retry(engine.owner, id, null);
    expect(
      await refusalOf(engine.actionService.approve(engine.owner, id, null, { run: 1, isHeld: true })),
    ).toMatchObject({
      code: "not_approvable",
    });
    expect((await engine.actionService.approve(engine.owner, id, null, { run: 2, isHeld: true })).status).toBe(
      "pending",
    );
  });
});

describe("approve against cancel, a hundred times", () => {
  test("has one winner, whose decision alone is told; after a cancel that won nothing is sent", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, wrapStore: slowToClaim });
    const ends: Record<string, number> = {};
    for (let race = 0; race < 100; race += 1) {
      const end = await raceOnce(engine, race);
      ends[end] = (ends[end] ?? 0) + 1;
    }
    console.log(`approve against cancel: ${JSON.stringify(ends)}`);
    expect(Object.keys(ends).toSorted()).toEqual(["approved", "approved, then cancelled", "rejected"]);
    engine.clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toHaveLength(ends["approved"] ?? 0);
    expect(new Set(sender.sent.map(actionOf)).size).toBe(sender.sent.length);
  });

  /** Every second claim comes a turn late, so that a cancel may stand between the yes and the sending. */
  function slowToClaim(store: Store): Store {
    let claims = 0;
    const claimDue: Store["actions"]["claimDue"] = async (claim) => {
      if ((claims += 1) % 2 === 0) for (let turns = 0; turns < 5; turns += 1) await turn();
      return store.actions.claimDue(claim);
    };
    return { ...store, actions: { ...store.actions, claimDue } };
  }

  async function raceOnce(engine: Engine, race: number): Promise<string> {
    const { actionService, owner } = engine;
    const { id } = await engine.create({ approve: true });
    const decide = {
      approve: async () => actionService.approve(owner, id, "yes"),
      cancel: async () => actionService.cancel(owner, id, "no"),
    };
    // Who is first alternates, and how far ahead: in the same turn, a microtask or a turn of the event loop.
    const approveFirst = race % 2 === 0;
    const first = refusalOf(approveFirst ? decide.approve() : decide.cancel());
    if (race % 3 === 1) await Promise.resolve();
    if (race % 3 === 2) await turn();
    const second = refusalOf(approveFirst ? decide.cancel() : decide.approve());
    const [approveRefused, cancelRefused] = approveFirst ? [await first, await second] : [await second, await first];
    const types = async () => (await engine.events(id)).map(({ type }) => type);

    if (approveRefused !== null) {
      expect({ approveRefused: approveRefused.code, cancelRefused }).toEqual({
        approveRefused: "not_approvable",
        cancelRefused: null,
      });
      expect((await actionService.get(owner, id)).status).toBe("cancelled");
      expect(await types()).toEqual(["created", "held", "rejected"]);
      return "rejected";
    }
    if (cancelRefused !== null) {
      expect(cancelRefused.code).toBe("not_cancellable");
      await engine.saw(id, { status: "completed" });
      expect(await types()).toEqual(["created", "held", "approved", "started", "attempt", "completed"]);
      return "approved";
    }
    // Both were told yes: only where the cancel came after the approve, and before anything was sent.
    expect((await actionService.get(owner, id)).status).toBe("cancelled");
    expect(await types()).toEqual(["created", "held", "approved", "cancelled"]);
    return "approved, then cancelled";
  }

  test("and of a hundred approves at once one wins", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ approve: true });
    const refusals = await Promise.all(
      Array.from({ length: 100 }, () => refusalOf(engine.actionService.approve(engine.owner, id, null))),
    );
    expect(refusals.filter((refusal) => refusal === null)).toHaveLength(1);
    expect(new Set(refusals.map((refusal) => refusal?.code))).toEqual(new Set([undefined, "not_approvable"]));
    await engine.saw(id, { status: "completed" });
    expect((await engine.events(id)).filter(({ type }) => type === "approved")).toHaveLength(1);
    expect(sender.sent).toHaveLength(1);
  });
});

describe("a decision whose write is overtaken", () => {
  /** A store that lets something else happen between the reading and the writing of a decision. */
  const overtaken =
    (before: (write: number) => Promise<boolean>) =>
    (store: Store): Store => {
      let writes = 0;
      const apply: Store["actions"]["apply"] = async (write) => {
        if (!(await before((writes += 1)))) return store.actions.apply(write);
        return false;
      };
      return { ...store, actions: { ...store.actions, apply } };
    };

  test("is decided again on what is true by then", async () => {
    let id = "";
    const overtake = async (write: number) => {
      // The second write is that of the cancel below, and has the field for itself.
      if (write === 1) await engine.actionService.cancel(engine.owner, id, "first");
      return false;
    };
    await using engine = await openEngine({ starts: false, wrapStore: overtaken(overtake) });
    id = (await engine.create({ approve: true })).id;
    expect(await refusalOf(engine.actionService.approve(engine.owner, id, "late"))).toMatchObject({
      code: "not_approvable",
    });
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(["created", "held", "rejected"]);
  });

  test("three times over is given up without a trace", async () => {
    const overtake = async () => true;
    await using engine = await openEngine({ starts: false, wrapStore: overtaken(overtake) });
    const { id } = await engine.create({ approve: true });
    let heard = 0;
    engine.bus.subscribe(() => (heard += 1));
    expect(await refusalOf(engine.actionService.approve(engine.owner, id, null))).toMatchObject({
      code: "unavailable",
    });
    expect(heard).toBe(0);
    expect((await engine.actionService.get(engine.owner, id)).status).toBe("awaiting_approval");
  });
});

describe("what a role may not do", () => {
  const USES: readonly (readonly [
    Permission,
    (engine: Engine, role: (typeof ROLES)[number], id: string) => Promise<unknown>,
  ])[] = [
    [
      "create",
      ({ actionService, owner }, role) => actionService.create(as(role, owner), requestFor({ approve: true })),
    ],
    ["read", ({ actionService, owner }, role, id) => actionService.get(as(role, owner), id)],
    ["read", ({ actionService, owner }, role, id) => actionService.timeline(as(role, owner), id)],
    ["read", ({ actionService, owner }, role, id) => actionService.wait(as(role, owner), id, { waitMs: 1 })],
    ["approve", ({ actionService, owner }, role, id) => actionService.approve(as(role, owner), id, null)],
    ["cancel", ({ actionService, owner }, role, id) => actionService.cancel(as(role, owner), id, null)],
    ["retry", ({ actionService, owner }, role, id) => actionService.retry(as(role, owner), id, null)],
  ];

  test("is refused before anything is looked up: an id that exists and one that doesn't get the same words", async () => {
    // A store whose reading of actions is counted: a refusal must not come to it.
    let finds = 0;
    const counting = (store: Store): Store => {
      const find: Store["actions"]["find"] = (accountId, id) => ((finds += 1), store.actions.find(accountId, id));
      return { ...store, actions: { ...store.actions, find } };
    };
    await using engine = await openEngine({ starts: false, wrapStore: counting });
    const { id } = await engine.create({ approve: true });
    for (const role of ROLES) {
      for (const [permission, use] of USES) {
        if (mayDo(role, permission)) continue;
        const [known, unknown] = [
          await refusalOf(use(engine, role, id)),
          await refusalOf(use(engine, role, UNKNOWN_ID)),
        ];
        expect(known).toMatchObject({ code: "forbidden" });
        expect(unknown).toEqual(known);
      }
    }
    expect(finds).toBe(0);
    const { actions } = await engine.actionService.list(engine.owner, LIST_ALL);
    expect(actions.map((action) => action.id)).toEqual([id]);
    expect(actions[0]?.status).toBe("awaiting_approval");
  });

  test("is not the same as what isn't there: whoever may, is told that it does not exist", async () => {
    await using engine = await openEngine({ starts: false });
    for (const role of ROLES) {
      for (const [permission, use] of USES) {
        if (permission === "create" || !mayDo(role, permission)) continue;
        expect(await refusalOf(use(engine, role, UNKNOWN_ID))).toEqual({
          code: "not_found",
          message: "There is no such action.",
        });
      }
    }
    expect(engine.clock.timers).toBe(0);
  });
});

test("nobody decides on another account's action: it does not exist for them, and stays as it is", async () => {
  await using engine = await openEngine({ starts: false });
  const other = await anotherOwner(engine);
  const held = await engine.create({ approve: true });
  const cancelled = await engine.create({ approve: true });
  await engine.actionService.cancel(engine.owner, cancelled.id, null);
  const { approve, cancel, retry } = engine.actionService;
  for (const [decide, id] of [
    [approve, held.id],
    [cancel, held.id],
    [retry, cancelled.id],
  ] as const) {
    expect(await refusalOf(decide(other, id, null))).toEqual({
      code: "not_found",
      message: "There is no such action.",
    });
  }
  expect((await engine.actionService.get(engine.owner, held.id)).status).toBe("awaiting_approval");
  expect((await engine.actionService.get(engine.owner, cancelled.id)).status).toBe("cancelled");
});

const LIST_ALL = {
  statuses: [],
  method: null,
  host: null,
  dedupe: null,
  createdBy: null,
  createdAfter: null,
  createdBefore: null,
  search: NO_SEARCH,
  before: null,
  limit: 100,
} as const;
