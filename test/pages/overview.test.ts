import { expect, test } from "bun:test";
import { FAILING_HOSTS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { Overview } from "../../src/events/overview.ts";
import { ASSETS } from "../../src/pages/assets.ts";
import { overviewPage } from "../../src/pages/overview.tsx";
import { later, NOON } from "../support/factory.ts";
import { anOverview } from "../support/overview.ts";

const VISITOR = { email: "ann@example.com", role: "owner", hasOthers: false, formToken: "f".repeat(64) } as const;

const NO_RETRIES = { count: 0, due: 0, isCut: false, hosts: [] };

/** A page and everything that it loads. */
const BYTES_MAX = 60_000;

/** A day in which every half hour was full. */
function fullDay(overrides: Partial<Overview> = {}): Overview {
  const slots = anOverview().slots.map((slot, at) => ({
    ...slot,
    created: 123_456 + at,
    completed: 120_000 - 31 * at,
    failed: 3_456 + at,
    attempts: 234_567,
    p50Ms: 1_234,
    p95Ms: 12_345 + at,
  }));
  return anOverview({ slots, latency: { p50Ms: 120, p95Ms: 1_500, p99Ms: 20_000 }, ...overrides });
}

const pageOf = (overview: Overview, retries = NO_RETRIES) =>
  overviewPage({ user: VISITOR, overview, retries, now: NOON });

const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");

test("the fullest overview is a small page, with all that it loads", () => {
  const host = { host: `${"h".repeat(60)}.example`, failed: 9, attempts: 99, lastError: "No.", lastFailedAt: NOON };
  const html = pageOf(fullDay({ failing: Array.from({ length: FAILING_HOSTS_SHOWN_MAX }, () => host) }));
  expect(Buffer.byteLength(html) + ASSETS.reduce((all, { gzip }) => all + gzip.byteLength, 0)).toBeLessThan(BYTES_MAX);
});

test("what failed once is never 100 %", () => {
  const slots = fullDay().slots.map((slot, at) => ({ ...slot, completed: 1_000_000, failed: at === 0 ? 1 : 0 }));
  expect(textOf(pageOf(fullDay({ slots })))).toContain("Success rate 99.9 %");
});

test("it says how far back it knows", () => {
  expect(textOf(pageOf(fullDay()))).toContain("The last 24 hours, in half-hour steps.");
  const young = textOf(pageOf(fullDay({ since: later(-60_000) })));
  expect(young).toContain("Counted since 4 Mar 2026, 11:59:00 UTC , less than 24 hours");
  expect(young).toContain("earlier data is not included");
  expect(textOf(pageOf(fullDay(), { ...NO_RETRIES, count: 9_999, due: 1, isCut: true }))).toContain(
    "At least 9999 calls scheduled. 1 more is due now.",
  );
});

test("a bar is as high as its number, what stands on it stands above it, and what is little is seen", () => {
  const empty = { created: 0, completed: 0, failed: 0, attempts: 1, p50Ms: null, p95Ms: null };
  const slots = [
    { ...empty, at: NOON, completed: 75, failed: 25 },
    { ...empty, at: NOON, completed: 49, failed: 1 },
    { ...empty, at: NOON },
  ];
  const html = pageOf(fullDay({ slots }));
  const drawn = (look: string) => new RegExp(`<path class="bar-${look}" d="([^"]*)"`).exec(html)?.[1];
  expect(drawn("good")).toBe("M0 25h8v75h-8zM10 51h8v49h-8z");
  expect(drawn("bad")).toBe("M0 0h8v25h-8zM10 49.5h8v1.5h-8z");
  // In front of each other: both stand on the ground, the smaller one is drawn last.
  expect(html.indexOf("bar-faint")).toBeLessThan(html.indexOf('"bar-busy"'));
});
