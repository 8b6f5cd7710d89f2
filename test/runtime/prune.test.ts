import { createPrune } from "../../src/app/housekeeping.ts";
import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/core/domain-error.ts";
import type { LogFields } from "../../src/observability/log.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { answering } from "../actions/senders.ts";

const DAY_MS = 86_400_000;

const GO_ON = new AbortController().signal;

/** The prune job, of 30 days, and what it logged. It pauses for a turn only, which is harder for others. */
function pruneOf({ store: { upkeep, file } }: Engine) {
  const logged: (LogFields | undefined)[] = [];
  const log = { info: (_event: string, fields?: LogFields) => void logged.push(fields) };
  const after = (_delayMs: number, run: () => void) => {
    setImmediate(run);
    return () => {};
  };
  return { prune: createPrune({ upkeep, file, log, clock: { after } }, 30), logged };
}

describe("retention", () => {
  test("deletes what finished so many days ago, and nothing that is younger or not finished", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    const { clock, actionService, owner } = engine;
    const old = await engine.create({});
    const held = await engine.create({ approve: true });
    await engine.saw(old.id, { status: "completed" });
    clock.advance(DAY_MS);
    const young = await engine.create({});
    await engine.saw(young.id, { status: "completed" });
    const { prune, logged } = pruneOf(engine);
    clock.advance(29 * DAY_MS - 1);
    await prune(clock.now(), GO_ON);
    expect((await actionService.get(owner, old.id)).status).toBe("completed");
    clock.advance(1);
    await prune(clock.now(), GO_ON);
    expect(await actionService.get(owner, old.id).catch(codeOf)).toBe("not_found");
    expect(await actionService.timeline(owner, old.id).catch(codeOf)).toBe("not_found");
    expect((await actionService.get(owner, young.id)).status).toBe("completed");
    expect((await actionService.get(owner, held.id)).status).toBe("awaiting_approval");
    expect(logged).toEqual([{ count: 1 }]);
  });

  test("begins no further step when the service stops", async () => {
    await using engine = await openEngine({ starts: false });
    const { clock, actionService, owner } = engine;
    const { id } = await engine.create({});
    await actionService.cancel(owner, id, null);
    clock.advance(31 * DAY_MS);
    const { prune, logged } = pruneOf(engine);
    await prune(clock.now(), AbortSignal.abort());
    expect({ logged, status: (await actionService.get(owner, id)).status }).toEqual({
      logged: [],
      status: "cancelled",
    });
  });
});

const codeOf = (error: unknown) => (error instanceof DomainError ? error.code : error);
