import { describe, expect, test } from "bun:test";
import { maskedFacts, NO_HISTORY } from "../../src/approvals/facts.ts";
import { EARLIER_REJECTIONS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { EarlierRejection } from "../../src/approvals/rejections.ts";
import { anAction, NOON } from "../support/factory.ts";

const entry = (kind: EarlierRejection["kind"]): EarlierRejection => ({ kind, at: NOON, by: "key:ann", reason: null });

const countIn = (run: number, rejections: readonly EarlierRejection[]) =>
  maskedFacts(anAction({ run }), { ...NO_HISTORY, rejections }, "").facts.find(({ name }) => name === "rejections")
    ?.value;

describe("the number of earlier rejections", () => {
  test("leaves out what was asked since, and says where some may have been forgotten", () => {
    expect(countIn(2, [entry("rejected"), entry("asked")])).toBe("1");
    const most = Array.from({ length: EARLIER_REJECTIONS_SHOWN_MAX }, () => entry("rejected"));
    expect(countIn(2, most)).toBe("At least 10");
  });

  test("of a run that was begun again says no more than that none counts", () => {
    expect(countIn(1, [])).toBe("None");
    expect(countIn(2, [])).toBe("None that count");
    expect(countIn(1, [entry("asked")])).toBe("None that count");
  });
});
