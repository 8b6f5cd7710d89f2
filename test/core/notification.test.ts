import { expect, test } from "bun:test";
import { NOTIFY_DELAYS_MS } from "../../src/core/limits.ts";
import { type DeliveryResult, type Notification, settleNotification } from "../../src/core/notification.ts";
import { later, NOON } from "../support/factory.ts";

const FAILED: DeliveryResult = { kind: "failed", error: "The target refused the connection.", notBeforeMs: null };

function attempt(attempts: number): Notification {
  return {
    id: "n1",
    actionId: "act_1",
    accountId: "acc_1",
    run: 1,
    message: { kind: "callback", event: "action.completed", target: "https://hooks.example.com/" },
    keyId: "key_one",
    host: "hooks.example.com",
    attempts,
    leaseUntil: later(45_000),
  };
}

const after = (attempts: number, delivery: DeliveryResult, chance = 0.5) =>
  settleNotification(attempt(attempts), { delivery, now: NOON, chance });

const delayMs = ({ dueAt }: { dueAt: Date | null }) => (dueAt === null ? null : dueAt.getTime() - NOON.getTime());

test("a failed attempt is followed by another after 5 s, 30 s, 5 min, 30 min and 2 h, then by none", () => {
  const delays = [1, 2, 3, 4, 5, 6].map((attempts) => delayMs(after(attempts, FAILED)));
  expect(delays).toEqual([5_000, 30_000, 300_000, 1_800_000, 7_200_000, null]);
});

test.each([
  [0, 0.8],
  [0.25, 0.9],
  [0.75, 1.1],
  [0.999, 1.2],
])("with the chance %d each of these is %d times as long", (chance, factor) => {
  for (const [at, plainMs] of NOTIFY_DELAYS_MS.entries()) {
    const ratio = (delayMs(after(at + 1, FAILED, chance)) ?? 0) / plainMs;
    expect(ratio).toBeCloseTo(factor, 2);
  }
});

test("what is given up says so, after how many attempts", () => {
  expect(after(6, FAILED)).toMatchObject({
    status: "given_up",
    lastError: "The target refused the connection. Given up after 6 attempts.",
    event: {
      type: "callback",
      event: "action.completed",
      delivered: false,
      attempts: 6,
      error: "The target refused the connection. Given up after 6 attempts.",
      next_retry_at: null,
    },
  });
});

test("what is delivered has no error and no next attempt", () => {
  const change = after(3, { kind: "delivered" });
  expect(change).toMatchObject({ status: "delivered", dueAt: null, lastError: null });
  expect(change.event).toMatchObject({ delivered: true, attempts: 3, error: null, next_retry_at: null });
});

test("a refusal by policy is not tried again", () => {
  const refused: DeliveryResult = { kind: "refused", error: "The target's address is not allowed." };
  const error = "The target's address is not allowed. Given up after 1 attempt.";
  expect(after(1, refused)).toMatchObject({ status: "given_up", lastError: error });
});

test("an interrupted attempt is due again at once, while attempts remain", () => {
  const interrupted: DeliveryResult = { kind: "interrupted", error: "Interrupted." };
  expect(after(1, interrupted)).toMatchObject({ status: "pending", dueAt: NOON });
  expect(after(6, interrupted)).toMatchObject({ status: "given_up", dueAt: null });
});

test("a receiver's Retry-After makes the wait longer, never shorter", () => {
  const asked = (attempts: number, notBeforeMs: number) => delayMs(after(attempts, { ...FAILED, notBeforeMs }));
  expect(asked(1, 90_000)).toBe(90_000);
  expect(asked(1, 1_000)).toBe(5_000);
  expect(asked(6, 1_000)).toBeNull();
});

test("what is withheld was not tried, and says why; what is needless says nothing", () => {
  const withheld = after(1, { kind: "withheld", error: "No mail is sent." });
  expect(withheld).toMatchObject({ status: "given_up", dueAt: null, lastError: "No mail is sent." });
  expect(withheld.event).toMatchObject({ delivered: false, attempts: 0, error: "No mail is sent." });
  expect(after(1, { kind: "needless" })).toMatchObject({ status: "dropped", dueAt: null, event: null });
});
