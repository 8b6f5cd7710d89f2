import { describe, expect, test } from "bun:test";
import { createThrottle } from "../../src/accounts/throttle.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { LOGINS_REMEMBERED_MAX } from "../../src/domain/limits.ts";
import { verifies } from "../spec/verifies.ts";
import { FakeClock } from "../support/clock.ts";

function rig() {
  const clock = new FakeClock();
  const throttle = createThrottle(clock);
  const isLetIn = (email: string, client = "192.0.2.1") => {
    try {
      throttle({ email, client });
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.code === "rate_limited") return false;
      throw error;
    }
  };
  return { clock, throttle, isLetIn };
}
const times = (count: number, act: (at: number) => boolean) => Array.from({ length: count }, (_, at) => act(at));

describe("wrong log-ins", () => {
  test("of one address are five in a minute, in any case and from anywhere", () => {
    verifies("hostile.b121");
    const { isLetIn } = rig();
    const spelled = (at: number) => (at % 2 === 0 ? "ann@example.com" : "ANN@Example.com");
    expect(times(7, (at) => isLetIn(spelled(at), `192.0.2.${at}`))).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(isLetIn("bob@example.com")).toBe(true);
  });

  test("of one client are a hundred in a minute, of however many addresses", () => {
    verifies("hostile.b121");
    const { isLetIn } = rig();
    expect(times(101, (at) => isLetIn(`p${at}@example.com`)).indexOf(false)).toBe(100);
    expect(isLetIn("p0@example.com", "192.0.2.2")).toBe(true);
  });

  test("never lock for good: a minute after the first one it begins anew, whatever was tried meanwhile", () => {
    verifies("hostile.b121");
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

  test("are told by the monotonic clock: setting the other one back locks nobody out", () => {
    const { clock, isLetIn } = rig();
    times(5, () => isLetIn("ann@example.com"));
    clock.jump(-3_600_000);
    clock.advance(60_000);
    expect(isLetIn("ann@example.com")).toBe(true);
  });

  test("are taken back when they were none", () => {
    const { throttle, isLetIn } = rig();
    for (let at = 0; at < 300; at += 1) throttle({ email: "ann@example.com", client: "192.0.2.1" })();
    expect(times(6, () => isLetIn("ann@example.com"))).toEqual([true, true, true, true, true, false]);
  });

  test("taken back after their minute leave the next one as it is", () => {
    const { clock, throttle, isLetIn } = rig();
    const takeBacks = Array.from({ length: 5 }, () => throttle({ email: "ann@example.com", client: "192.0.2.1" }));
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
