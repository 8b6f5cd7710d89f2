import { expect, test } from "bun:test";
import { alertDue } from "../../src/core/credential.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { aCredential, later, NOON } from "../support/factory.ts";
import { alertEvent, parseAlert } from "../../src/core/notification-events.ts";

const END = later(90 * DAY_MS);

test.each([
  ["8 days before", -8 * DAY_MS, null],
  ["a moment more than 7 days before", -7 * DAY_MS - 1, null],
  ["7 days before", -7 * DAY_MS, "expiring"],
  ["a moment before", -1, "expiring"],
  ["at its end", 0, "expired"],
  ["6 days later", 6 * DAY_MS, "expired"],
  ["7 days later", 7 * DAY_MS, null],
])("what is told of a credential %s", (_, ms, stage) => {
  const one = aCredential({ expiresAt: END });
  const now = new Date(END.getTime() + ms);
  expect<string | null>(alertDue(one, now)?.stage ?? null).toBe(stage);
  expect(alertDue({ ...one, enabled: false }, now)).toBeNull();
});

test("nothing is told of one without an end, and of a short one only that it has ended", () => {
  expect(alertDue(aCredential(), NOON)).toBeNull();
  const short = aCredential({ createdAt: NOON, expiresAt: later(7 * DAY_MS) });
  expect(alertDue(short, later(5 * DAY_MS))).toBeNull();
  expect(alertDue(short, later(7 * DAY_MS))).toMatchObject({ stage: "expired" });
});

test("an event names the alert, and other events name none", () => {
  const alert = { stage: "expiring", expiresAt: END } as const;
  expect(parseAlert(alertEvent(alert, 12))).toEqual(alert);
  for (const event of ["approval", "invited", "requested:chn_1", "credential_expired", "credential_gone:1:1"])
    expect(parseAlert(event)).toBeNull();
});
