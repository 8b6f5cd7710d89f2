import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES } from "../../src/core/action.ts";
import { expire } from "../../src/core/changes.ts";
import { anAction, later, NOON } from "../support/factory.ts";

const HOUR_MS = 3_600_000;

const HELD = anAction({ approve: true });

const WAITED = { run: 1, heldAt: NOON, hoursMax: 3 };

const OVER = later(3 * HOUR_MS);

describe("the end of a wait for a person", () => {
  test("cancels the held run, by the system, with a reason", () => {
    expect(expire(HELD, WAITED, OVER)).toEqual({
      before: HELD,
      after: { ...HELD, status: "cancelled", dueAt: null, finishedAt: OVER, revision: 2 },
      events: [{ type: "cancelled", actor: "system", reason: "Nobody decided within 3 hours." }],
    });
  });

  test("says an hour where it is one", () => {
    const [event] = expire(HELD, { ...WAITED, hoursMax: 1 }, OVER)?.events ?? [];
    expect(event).toMatchObject({ reason: "Nobody decided within an hour." });
  });

  test("does not come before its time", () => {
    expect(expire(HELD, WAITED, later(3 * HOUR_MS - 1))).toBeNull();
    expect(expire(HELD, { ...WAITED, heldAt: later(1) }, OVER)).toBeNull();
  });

  test("is that of the run that was looked at, and of no other", () => {
    expect(expire({ ...HELD, run: 2 }, WAITED, OVER)).toBeNull();
  });

  test.each(ACTION_STATUSES.filter((status) => status !== "awaiting_approval"))("is not for what is %s", (status) => {
    expect(expire({ ...HELD, status }, WAITED, OVER)).toBeNull();
  });
});
