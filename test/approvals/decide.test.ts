import { describe, expect, test } from "bun:test";
import { openEngine, wrapping } from "../support/engine.ts";
import { as, refusalOf } from "../actions/callers.ts";
import { anAuditEntry, joined } from "../support/factory.ts";

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
});

describe("a decision whose write is overtaken", () => {
  /** A store that lets something else happen between the reading and the writing of a decision. */
  const overtaken = (before: (write: number) => Promise<boolean>) => {
    let writes = 0;
    return wrapping("actions", (actions) => ({
      apply: async (write) => !(await before((writes += 1))) && actions.apply(write),
    }));
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

  test("by the removal of its person is none", async () => {
    let personId = "";
    const overtake = async (write: number) => {
      if (write === 1) await engine.store.team.remove(engine.owner.accountId, personId, anAuditEntry());
      return false;
    };
    await using engine = await openEngine({ starts: false, wrapStore: overtaken(overtake) });
    const { owner, store } = engine;
    personId = (await joined(store, { accountId: owner.accountId, role: "approver" })).person.id;
    const { id } = await engine.create({ approve: true });
    const bob = { ...as("approver", owner), keyId: null, personId, actor: "user:bob@example.com" } as const;
    expect(await refusalOf(engine.actionService.approve(bob, id, null))).toMatchObject({ code: "forbidden" });
    expect((await engine.get(id)).status).toBe("awaiting_approval");
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
    expect((await engine.get(id)).status).toBe("awaiting_approval");
  });
});
