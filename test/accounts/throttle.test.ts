import { describe, expect, test } from "bun:test";
import { createClientThrottle, createLogInThrottle } from "../../src/accounts/throttle.ts";
import { RetryLater } from "../../src/core/domain-error.ts";
import { LOGINS_REMEMBERED_MAX, SIGN_UPS_PER_CLIENT_MAX } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";

/** 0: it was let in. Else the seconds after which it would be. */
function secondsOf(attempt: () => unknown): number {
  try {
    attempt();
    return 0;
  } catch (error) {
    if (error instanceof RetryLater && error.code === "rate_limited") return error.retryAfterSeconds;
    throw error;
  }
}

function rig() {
  const clock = new FakeClock();
  const throttle = createLogInThrottle(clock);
  const waitFor = (email: string, client = "192.0.2.1", device: string | null = null) =>
    secondsOf(() => throttle({ email, client, device }));
  return { clock, throttle, waitFor, isLetIn: (...attempt: Parameters<typeof waitFor>) => waitFor(...attempt) === 0 };
}

const times = (count: number, act: (at: number) => boolean) => Array.from({ length: count }, (_, at) => act(at));

const FIVE = [true, true, true, true, true, false];

describe("wrong logins", () => {
  test("of one address from one client are five in a minute, in any case of the address", () => {
    const { isLetIn } = rig();
    const spelled = (at: number) => (at % 2 === 0 ? "ann@example.com" : "ANN@Example.com");
    expect(times(6, (at) => isLetIn(spelled(at)))).toEqual(FIVE);
    expect(isLetIn("bob@example.com")).toBe(true);
  });

  test("of one address from other clients keep nobody out", () => {
    const { isLetIn } = rig();
    for (let at = 0; at < 300; at += 1) isLetIn("ann@example.com", `client ${at % 60}`);
    expect(times(6, () => isLetIn("ann@example.com"))).toEqual(FIVE);
  });

  test("of one client are a hundred in a minute, of however many addresses", () => {
    const { isLetIn } = rig();
    expect(times(101, (at) => isLetIn(`p${at}@example.com`)).indexOf(false)).toBe(100);
    expect(isLetIn("p0@example.com", "192.0.2.2")).toBe(true);
  });

  test("leave a known device of the account its own five, whatever comes from its client and elsewhere", () => {
    const { isLetIn } = rig();
    for (let at = 0; at < 300; at += 1) isLetIn(at % 2 === 0 ? "ann@example.com" : `p${at}@example.com`);
    expect(isLetIn("ann@example.com")).toBe(false);
    expect(times(6, () => isLetIn("ann@example.com", "192.0.2.1", "one"))).toEqual(FIVE);
    expect(isLetIn("ann@example.com", "192.0.2.9", "one")).toBe(false);
    expect(isLetIn("ann@example.com", "192.0.2.1", "other")).toBe(true);
  });

  test("of a known device count for nobody else", () => {
    const { isLetIn } = rig();
    for (let at = 0; at < 200; at += 1) isLetIn("ann@example.com", "192.0.2.1", `device ${at}`);
    expect(times(6, () => isLetIn("ann@example.com"))).toEqual(FIVE);
  });

  test("tell after how many seconds the next is looked at: not one sooner, and then it is", () => {
    const { clock, waitFor, isLetIn } = rig();
    for (let at = 0; at < 5; at += 1) isLetIn("ann@example.com");
    expect(waitFor("ann@example.com")).toBe(60);
    clock.advance(12_300);
    expect(waitFor("ann@example.com")).toBe(48);
    clock.advance(47_000);
    expect(waitFor("ann@example.com")).toBe(1);
    clock.advance(1_000);
    expect(waitFor("ann@example.com")).toBe(0);
  });

  test("tell the longer of two waits", () => {
    const { clock, waitFor, isLetIn } = rig();
    for (let at = 0; at < 96; at += 1) isLetIn(`p${at}@example.com`);
    clock.advance(30_000);
    for (let at = 0; at < 4; at += 1) isLetIn("ann@example.com");
    expect(waitFor("ann@example.com")).toBe(30);
    clock.advance(30_000);
    expect(isLetIn("ann@example.com")).toBe(true);
    expect(waitFor("ann@example.com")).toBe(30);
  });

  test("never lock for good: a minute after the first one it begins anew, whatever was tried meanwhile", () => {
    const { clock, isLetIn } = rig();
    for (let minute = 0; minute < 5; minute += 1) {
      expect(times(5, () => isLetIn("ann@example.com"))).toEqual([true, true, true, true, true]);
      for (let second = 0; second < 59; second += 1) {
        clock.advance(1_000);
        expect(isLetIn("ann@example.com")).toBe(false);
      }
      clock.advance(1_000);
    }
  });

  test("are counted by the monotonic clock: setting the other one back locks nobody out", () => {
    const { clock, isLetIn } = rig();
    times(5, () => isLetIn("ann@example.com"));
    clock.jump(-3_600_000);
    clock.advance(60_000);
    expect(isLetIn("ann@example.com")).toBe(true);
  });

  test.each([null, "one"])("are taken back when they were none, by device %p", (device) => {
    const { throttle, isLetIn } = rig();
    for (let at = 0; at < 300; at += 1) throttle({ email: "ann@example.com", client: "192.0.2.1", device })();
    expect(times(6, () => isLetIn("ann@example.com", "192.0.2.1", device))).toEqual(FIVE);
  });

  test("taken back after their minute leave the next one as it is", () => {
    const { clock, throttle, isLetIn } = rig();
    const attempt = { email: "ann@example.com", client: "192.0.2.1", device: null };
    const takeBacks = Array.from({ length: 5 }, () => throttle(attempt));
    clock.advance(60_000);
    times(5, () => isLetIn("ann@example.com"));
    takeBacks.forEach((takeBack) => takeBack());
    expect(isLetIn("ann@example.com")).toBe(false);
  });

  test("are remembered of so many addresses at most", () => {
    const { isLetIn } = rig();
    times(5, () => isLetIn("first@example.com", "first"));
    for (let at = 0; at < LOGINS_REMEMBERED_MAX - 2; at += 1) isLetIn(`p${at}@example.com`, `client ${at}`);
    expect(isLetIn("first@example.com", "first")).toBe(false);
    times(9, (at) => isLetIn(`more${at}@example.com`, `more ${at}`));
    expect(isLetIn("first@example.com", "first")).toBe(true);
  });
});

test("sign-ups of one client are twenty in a minute, and those that were none are taken back", () => {
  const clock = new FakeClock();
  const throttle = createClientThrottle(clock, SIGN_UPS_PER_CLIENT_MAX, "sign-ups");
  for (let at = 0; at < 100; at += 1) throttle("192.0.2.1")();
  for (let at = 0; at < SIGN_UPS_PER_CLIENT_MAX; at += 1) throttle("192.0.2.1");
  clock.advance(9_500);
  expect(secondsOf(() => throttle("192.0.2.1"))).toBe(51);
  expect(secondsOf(() => throttle("192.0.2.2"))).toBe(0);
  clock.advance(50_500);
  expect(secondsOf(() => throttle("192.0.2.1"))).toBe(0);
});
