import { describe, expect, test } from "bun:test";
import { createExpire } from "../../src/approvals/expire.ts";
import { EXPIRE_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import type { LogFields } from "../../src/observability/log.ts";
import { type Engine, openEngine, wrapping } from "../support/engine.ts";
import { refusalOf } from "../actions/callers.ts";

const HOUR_MS = 3_600_000;

const GO_ON = new AbortController().signal;

/** The expiry job, with a limit of two hours, and what it logged. */
function expireOf({ app, enqueue }: Engine, hoursMax = 2) {
  const logged: (LogFields | undefined)[] = [];
  const write = (_event: string, fields?: LogFields) => void logged.push(fields);
  const log = { ...app.log, info: write, error: write };
  const expire = createExpire({ ...app, log }, enqueue, hoursMax);
  return { expire, logged };
}

describe("an action that nobody decides about", () => {
  test("is cancelled by the system when its time is over, not a moment before, and says why", async () => {
    await using engine = await openEngine({ starts: false });
    const { expire, logged } = expireOf(engine);
    const { id } = await engine.create({ approve: true });
    engine.clock.advance(2 * HOUR_MS - 1);
    await expire(engine.clock.now(), GO_ON);
    expect((await engine.get(id)).status).toBe("awaiting_approval");
    engine.clock.advance(1);
    const news: string[] = [];
    engine.bus.subscribe((action) => void news.push(`${action.id} ${action.status}`));
    await expire(engine.clock.now(), GO_ON);
    expect(await engine.get(id)).toMatchObject({
      status: "cancelled",
      finishedAt: engine.clock.now(),
      approvedAt: null,
      attempts: 0,
    });
    expect((await engine.events(id)).at(-1)).toEqual({
      type: "cancelled",
      actor: "system",
      reason: "Nobody decided within 2 hours.",
    });
    expect(news).toEqual([`${id} cancelled`]);
    expect(logged).toEqual([{ count: 1 }]);
  });

  test("is decided once, whoever comes first", async () => {
    await using engine = await openEngine({ starts: false });
    const { actionService, owner, clock } = engine;
    const held = await Promise.all(Array.from({ length: 60 }, () => engine.create({ approve: true })));
    clock.advance(2 * HOUR_MS);
    const approvals = held.map(({ id }) => refusalOf(actionService.approve(owner, id, null)));
    const [refusals] = await Promise.all([Promise.all(approvals), expireOf(engine).expire(clock.now(), GO_ON)]);
    for (const [n, { id }] of held.entries()) {
      const { status } = await actionService.get(owner, id);
      const told = (await engine.events(id)).map(({ type }) => type);
      const isApproved = refusals[n] === null;
      expect({ status, last: told.at(-1), length: told.length }).toEqual(
        isApproved
          ? { status: "pending", last: "approved", length: 3 }
          : { status: "cancelled", last: "cancelled", length: 3 },
      );
      if (!isApproved) expect(refusals[n]?.code).toBe("not_approvable");
    }
  });

  test("is found among many that wait, page by page, and the rest is left when the service stops", async () => {
    const stop = new AbortController();
    let pages = 0;
    const counted = wrapping("upkeep", (upkeep) => ({
      held: async (...place) => {
        pages += 1;
        if (pages === 3) stop.abort();
        return upkeep.held(...place);
      },
    }));
    await using engine = await openEngine({ starts: false, wrapStore: counted });
    const { clock } = engine;
    await Promise.all(Array.from({ length: EXPIRE_SCAN_ROWS_MAX + 3 }, () => engine.create({ approve: true })));
    clock.advance(2 * HOUR_MS);
    const { expire, logged } = expireOf(engine);
    await expire(clock.now(), GO_ON);
    expect({ pages, logged }).toEqual({ pages: 2, logged: [{ count: EXPIRE_SCAN_ROWS_MAX + 3 }] });
    await engine.create({ approve: true });
    clock.advance(2 * HOUR_MS);
    await expire(clock.now(), stop.signal);
    expect(await engine.store.actions.waiting()).toMatchObject({ awaiting_approval: 1 });
  });
});
