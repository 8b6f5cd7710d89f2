import { describe, expect, test } from "bun:test";
import { awaitsRunAt, isExpired, nextRetryAt, extrasText, ownRetrySettings } from "../../src/core/action.ts";
import { approve, type Change, expireUnsent, allowedOperations, retry, sendNow } from "../../src/core/changes.ts";
import { differs } from "../../src/core/dedupe.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import { settle } from "../../src/core/settle.ts";
import { latestDecision } from "../../src/core/timeline.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { anAction, answered, aRequest, later } from "../support/factory.ts";

const HOUR = 3_600_000;

const input = (ms: number) => ({ actor: "user:ann@example.com", reason: null, now: later(ms) }) as const;

const runAt = later(HOUR).getTime();

const delayed = (more = {}) => anAction({ extras: { runAt }, dueAt: later(HOUR), ...more });

const held = (more = {}) => anAction({ status: "awaiting_approval", approve: true, dueAt: null, ...more });

function changed(result: Change | DomainError): Change {
  if (result instanceof DomainError) throw result;
  return result;
}

const codeOf = (result: Change | DomainError) => (result instanceof DomainError ? result.code : "changed");

describe("a delayed action", () => {
  test("has no next retry, and is sent at its time if it is approved before, at once if later", () => {
    expect([awaitsRunAt(delayed()), nextRetryAt(delayed())]).toEqual([true, null]);
    const approvedAt = (ms: number) =>
      changed(approve(held({ extras: { runAt } }), { ...input(ms), digest: "d" })).after.dueAt;
    expect([approvedAt(0), approvedAt(2 * HOUR)]).toEqual([later(HOUR), later(2 * HOUR)]);
  });

  test("is retried at once, but waits for its time where the retry needs approval again", () => {
    const ended = delayed({ status: "cancelled", dueAt: null });
    expect(changed(retry(ended, input(5))).after).toMatchObject({ status: "pending", run: 2, dueAt: later(5) });
    const again = changed(retry(held({ status: "cancelled", extras: { runAt } }), input(5))).after;
    const approvedAt = (ms: number) => changed(approve(again, { ...input(ms), digest: "d" })).after.dueAt;
    expect([approvedAt(6), approvedAt(2 * HOUR)]).toEqual([later(HOUR), later(2 * HOUR)]);
  });
});

describe("send-now", () => {
  test("makes due what waits for its time or for its next attempt, and keeps its attempts", () => {
    const sleeping = anAction({ attempts: 1, dueAt: later(HOUR) });
    for (const action of [delayed(), sleeping]) {
      const { after, events } = changed(sendNow(action, input(5)));
      expect(after).toEqual({ ...action, dueAt: later(5), revision: action.revision + 1 });
      expect(events).toEqual([{ type: "sent_now", actor: "user:ann@example.com", reason: null }]);
    }
  });

  test.each([
    ["is due", anAction({ dueAt: later(5) })],
    ["is held", held()],
    ["is held, whatever its time says", held({ dueAt: later(HOUR) })],
    ["is being sent", anAction({ status: "active", attempts: 1, dueAt: null, leaseUntil: later(9) })],
    ["has ended", anAction({ status: "failed", attempts: 1, dueAt: null })],
    ["has expired", delayed({ expiresAt: later(5), dueAt: later(9) })],
  ])("is refused for what %s", (_what, action) => {
    expect(codeOf(sendNow(action, input(5)))).toBe("not_retryable");
  });
});

describe("an action that expires", () => {
  const expiresAt = later(HOUR);

  test("is cancelled by the service where it waits, from that time on, and nowhere else", () => {
    for (const action of [anAction({ expiresAt }), held({ expiresAt })]) {
      expect(expireUnsent(action, later(HOUR - 1))).toBeNull();
      const change = expireUnsent(action, later(HOUR));
      expect(change?.after).toMatchObject({ status: "cancelled", dueAt: null, finishedAt: later(HOUR) });
      expect(change?.events).toMatchObject([{ type: "cancelled", actor: "system" }]);
      // Nobody had to decide it.
      const entry = { seq: 1, at: later(HOUR), run: 1, status: "cancelled" as const };
      const entries = (change?.events ?? []).map((event) => ({ ...entry, event }));
      expect(latestDecision(change?.after ?? action, entries)).toBeNull();
    }
    const active = anAction({ status: "active", attempts: 1, dueAt: null, leaseUntil: later(9), expiresAt });
    expect(expireUnsent(active, later(2 * HOUR))).toBeNull();
    expect(expireUnsent(anAction({}), later(2 * HOUR))).toBeNull();
  });

  test("can be neither approved nor retried any more, and says so", () => {
    const cancelled = anAction({ status: "cancelled", dueAt: null, expiresAt });
    expect(codeOf(retry(cancelled, input(HOUR)))).toBe("not_retryable");
    expect(codeOf(retry(cancelled, input(HOUR - 1)))).toBe("changed");
    expect(codeOf(approve(held({ expiresAt }), { ...input(HOUR), digest: "d" }))).toBe("not_approvable");
    expect([allowedOperations(cancelled, later(0)), allowedOperations(cancelled, later(HOUR))]).toEqual([
      ["retry"],
      [],
    ]);
    expect(allowedOperations(held({ expiresAt }), later(HOUR))).toEqual(["cancel"]);
    expect([isExpired(cancelled, later(HOUR - 1)), isExpired(anAction({}), later(HOUR))]).toEqual([false, false]);
  });
});

describe("give_up_on", () => {
  const active = anAction({ status: "active", attempts: 1, retries: 3, dueAt: null, leaseUntil: later(9) });
  const endOf = (code: number, giveUpOn?: readonly (number | "4xx")[]) =>
    settle(active, {
      outcome: { ...answered(code), retryAfter: "5" },
      now: later(0),
      durationMs: 1,
      timeoutMs: 1_000,
      backoff: { baseMs: 1, capMs: 1 },
      chance: 0.5,
      ...(giveUpOn !== undefined && { giveUpOn }),
    }).after;

  test("ends an action at these statuses, and at no others; by default at none", () => {
    expect(endOf(422, ["4xx"]).status).toBe("failed");
    expect(endOf(401, [401]).status).toBe("failed");
    expect(endOf(503, ["4xx", 401])).toMatchObject({ status: "pending", dueAt: later(5_000) });
    expect(endOf(422).status).toBe("pending");
    expect(endOf(200, ["4xx"]).status).toBe("completed");
  });
});

test("a repeated create differs in what it says of its times and attempts; the same delay is the same", () => {
  const one = aRequest({ extras: { runAt, delaySeconds: 60, timeoutMs: 1_000 }, expiresAt: later(5) });
  expect(differs(one, { ...one, extras: { ...one.extras, runAt: runAt + 500 } })).toEqual([]);
  expect(differs(one, aRequest({ extras: { runAt } }))).toEqual([
    "run_at",
    "delay_seconds",
    "expires_at",
    "timeout_ms",
  ]);
});

test("what a create says of its attempts is stored and read back", () => {
  const extras = {
    timeoutMs: 5_000,
    backoff: { baseMs: 1, capMs: 2 },
    giveUpOn: [401, "5xx"],
    runAt,
    delaySeconds: 5,
  } as const;
  const stored = { ...extras, giveUpOn: [...extras.giveUpOn] };
  expect(parseExtras(extrasText(stored) ?? "")).toEqual(stored);
  expect(ownRetrySettings(stored)).toEqual({
    timeoutMs: 5_000,
    backoff: { baseMs: 1, capMs: 2 },
    giveUpOn: [401, "5xx"],
  });
  expect(ownRetrySettings({ runAt })).toBeNull();
  for (const text of ['{"timeoutMs":0}', '{"giveUpOn":["6xx"]}', '{"runAt":1e400}', '{"backoff":{"baseMs":1}}']) {
    expect(parseExtras(text)).toBeNull();
  }
});
