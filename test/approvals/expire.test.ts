import { describe, expect, test } from "bun:test";
import { createExpire } from "../../src/approvals/expire.ts";
import { ACTION_STATUSES } from "../../src/core/action.ts";
import { expire as expireRule } from "../../src/core/changes.ts";
import { EXPIRE_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import type { LogFields } from "../../src/observability/log.ts";
import { type Engine, openEngine, wrapping } from "../support/engine.ts";
import { anAction, later, NOON } from "../support/factory.ts";
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
      reason: "No one decided within 2 hours.",
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

const HELD = anAction({ approve: true });

const WAITED = { run: 1, heldAt: NOON, hoursMax: 3 };

const OVER = later(3 * HOUR_MS);

describe("the end of a wait for a person", () => {
  test("cancels the held run, by the system, with a reason", () => {
    expect(expireRule(HELD, WAITED, OVER)).toEqual({
      before: HELD,
      after: { ...HELD, status: "cancelled", dueAt: null, finishedAt: OVER, revision: 2 },
      events: [{ type: "cancelled", actor: "system", reason: "No one decided within 3 hours." }],
    });
  });

  test("says an hour where it is one", () => {
    const [event] = expireRule(HELD, { ...WAITED, hoursMax: 1 }, OVER)?.events ?? [];
    expect(event).toMatchObject({ reason: "No one decided within an hour." });
  });

  test("does not come before its time", () => {
    expect(expireRule(HELD, WAITED, later(3 * HOUR_MS - 1))).toBeNull();
    expect(expireRule(HELD, { ...WAITED, heldAt: later(1) }, OVER)).toBeNull();
  });

  test("is that of the run that was looked at, and of no other", () => {
    expect(expireRule({ ...HELD, run: 2 }, WAITED, OVER)).toBeNull();
  });

  test.each(ACTION_STATUSES.filter((status) => status !== "awaiting_approval"))("is not for what is %s", (status) => {
    expect(expireRule({ ...HELD, status }, WAITED, OVER)).toBeNull();
  });
});
