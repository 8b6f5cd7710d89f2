import { describe, expect, test } from "bun:test";
import { FAILING_HOSTS_SHOWN_MAX, OVERVIEW_NAMES_SHOWN_MAX } from "../../src/core/limits.ts";
import type { OverviewAnswer } from "../../src/events/overview.ts";
import type { FailingHost, HostHour, NamedFigures, OverviewFigures } from "../../src/events/overview-figures.ts";
import { MEMBER_ROLES, type MemberRole, roleViewer } from "../../src/core/roles.ts";
import { maskText } from "../../src/receipts/masking.ts";
import { RANGE_NAMES } from "../../src/core/activity.ts";
import { ASSETS } from "../../src/ui/assets.ts";
import type { FirstStepProgress } from "../../src/accounts/first-steps.ts";
import { barHeight, chartScale } from "../../src/ui/chart.tsx";
import { overviewPage } from "../../src/pages/actions/overview.tsx";
import { later, NOON } from "../support/factory.ts";
import { textOf } from "../support/forms.ts";
import { anOverview, anOverviewAnswer } from "../support/overview.ts";

const VISITOR = { email: "ann@example.com", role: "owner", hasOthers: false, formToken: "f".repeat(64) } as const;

/** A page and everything that it loads, compressed as they are sent. */
const BYTES_MAX = 110_000;

/** A range in which every slot was full. */
function fullRange({ range = "24h", ...overrides }: Partial<OverviewFigures> = {}): OverviewFigures {
  const slots = anOverview({ range }).slots.map((slot, at) => ({
    ...slot,
    created: 123_456 + at,
    completed: 120_000 - 31 * at,
    failed: 3_456 + at,
    attempts: 234_567,
    p50Ms: 1_234,
    p95Ms: 12_345 + at,
  }));
  return anOverview({ range, slots, latency: { p50Ms: 120, p95Ms: 1_500, p99Ms: 20_000 }, ...overrides });
}

interface Shown extends Partial<Omit<OverviewAnswer, "overview">> {
  readonly view?: "charts" | "table";
  readonly role?: MemberRole;
  readonly steps?: FirstStepProgress | null;
}

const pageOf = (
  overview: OverviewFigures,
  { view = "charts", role = "owner", steps = null, ...answer }: Shown = {},
) => {
  const shown = { ...anOverviewAnswer(answer), overview, view, steps, now: NOON, baseUrl: "https://og.example" };
  return overviewPage({ ...shown, user: { ...VISITOR, role } });
};

const aFailing = (failing: Partial<FailingHost> = {}): FailingHost => {
  const counts = { completed: 2, failed: 1, attempts: 9, failedAttempts: 7 };
  return { host: "a.example", ...counts, lastError: "No.", lastFailedAt: NOON, ...failing };
};

const named = (name: string, overrides: Partial<NamedFigures> = {}): NamedFigures => {
  const counts = { created: 9, completed: 6, failed: 2, attempts: 11, failedAttempts: 5 };
  return { name, ...counts, p50Ms: 40, p95Ms: 90, ...overrides };
};

describe("the page of the overview", () => {
  test.each(RANGE_NAMES)("is small where everything is full, with all that it loads: %s", (range) => {
    const host = aFailing({ host: `${"h".repeat(60)}.example` });
    const names = Array.from({ length: OVERVIEW_NAMES_SHOWN_MAX }, (_, at) => named(`${"n".repeat(60)}${at}.example`));
    const breakdown = { named: names, others: named("") };
    const failing = Array.from({ length: FAILING_HOSTS_SHOWN_MAX }, () => host);
    const hour: HostHour = { at: NOON, created: 0, completed: 1, failed: 1, attempts: 2, failedAttempts: 1 };
    const hours = Array.from({ length: 24 }, () => hour);
    const hostHours = new Map([...names.map(({ name }) => [name, hours] as const), [host.host, hours]]);
    const html = pageOf(fullRange({ range, failing, hosts: breakdown, keys: breakdown, hostHours }));
    const assets = ASSETS.reduce((all, { gzip }) => all + gzip.byteLength, 0);
    expect(Buffer.byteLength(html) + assets).toBeLessThan(BYTES_MAX);
  });

  test("says that what failed once is not 100 %", () => {
    const slots = fullRange().slots.map((slot, at) => ({ ...slot, completed: 1_000_000, failed: at === 0 ? 1 : 0 }));
    expect(textOf(pageOf(fullRange({ slots })))).toContain("Success 99.9 %");
    expect(textOf(pageOf(anOverview()))).toContain("Success –");
  });

  test.each(MEMBER_ROLES)("shows texts as the page of an action shows them: %s", (role) => {
    const secretHost = "sk_live_0123456789abcdefghijklmn.example";
    const lastError = "Wrong key, password=tulip22";
    const html = pageOf(
      fullRange({
        hosts: { named: [named(secretHost), named("a.example")], others: null },
        keys: { named: [named("key_a")], others: null },
        failing: [aFailing({ host: secretHost, lastError })],
      }),
      {
        role,
        keyNames: new Map([["key_a", "billing token=rose33"]]),
        retries: {
          count: 1,
          due: 0,
          dueSince: null,
          isCut: false,
          hosts: [{ host: secretHost, count: 2, nextAt: later(60_000) }],
        },
      },
    );
    // Deciders see values that only their names make secret; nobody sees what has the format of a secret.
    for (const word of ["tulip22", "rose33"]) expect(html.includes(word)).toBe(role !== "reader");
    for (const text of [secretHost, lastError, "billing token=rose33"]) {
      expect(textOf(html)).toContain(maskText(text, roleViewer(role)));
    }
    expect(html).not.toContain("0123456789abcdefghijklmn");
    expect(html).toContain("host=a.example");
  });

  test("says what its numbers don't cover", () => {
    expect(textOf(pageOf(fullRange()))).not.toContain("Counted");
    const young = textOf(pageOf(fullRange({ since: later(-60_000) })));
    expect(young).toContain("Counted from 4 Mar 2026, 11:59:00 UTC");
    const behind = textOf(pageOf(fullRange({ countedUntil: later(-60_000) })));
    expect(behind).toContain("Counted up to 4 Mar 2026, 11:59:00 UTC");
  });

  test("leads from every number to the actions that it counts", () => {
    const html = pageOf(
      fullRange({
        hosts: { named: [named("a.example:81")], others: named("") },
        keys: { named: [named("key_a"), named("")], others: null },
        failing: [aFailing({ host: "b.example" })],
        decisions: { approved: 3, rejected: 0, p50Ms: 1_000, p95Ms: 90_000 },
      }),
      {
        keyNames: new Map([["key_a", "billing"]]),
        waiting: { count: 1_000, isCut: true, oldestAt: later(-7_200_000), overAnHour: 1_000, overADay: 7 },
        retries: {
          count: 9_999,
          due: 1,
          dueSince: later(-180_000),
          isCut: true,
          hosts: [{ host: "c.example", count: 2, nextAt: later(60_000) }],
        },
      },
    );
    const since = "created_after=2026-03-03T12%3A30%3A00Z";
    for (const link of [
      `/actions?${since}`,
      `/actions?status=failed&amp;${since}`,
      `/actions?host=a.example%3A81&amp;${since}`,
      `/actions?host=a.example%3A81&amp;status=failed&amp;${since}`,
      `/actions?created_by=key_a&amp;${since}`,
      `/actions?created_after=2026-03-04T12%3A00%3A00Z&amp;created_before=2026-03-04T12%3A30%3A00Z`,
      "/actions?status=pending",
      "/actions?host=c.example&amp;status=pending",
      "/audit?kind=approved&amp;since=2026-03-03T12%3A30%3A00Z",
      "/approvals",
      "/approvals?age=hour",
      "/approvals?age=day",
      `/actions?host=b.example&amp;status=failed&amp;${since}`,
      "/overview?range=30d",
      "/overview?range=24h&amp;view=table",
    ]) {
      expect(html).toContain(`href="${link}"`);
    }
    const text = textOf(html);
    for (const words of [
      "billing 9 75 % 2 40 ms 90 ms",
      "Without a key 9",
      "All other hosts 9",
      "3 approved , 0 rejected",
      "1 s median, 1.5 min p95",
      "1,000+",
      "1,000+ over 1 hour , 7 over 1 day",
      "1 of 3 actions",
      "1 due now. Oldest due 3 min ago .",
      "At least 9,999 calls scheduled, 1 due now.",
    ]) {
      expect(text).toContain(words);
    }
    // The audit log is for owners.
    expect(
      pageOf(fullRange({ decisions: { approved: 3, rejected: 0, p50Ms: 1, p95Ms: 1 } }), { role: "reader" }),
    ).not.toContain("/audit");
  });

  test("has a table in place of the charts, of what happened, newest first", () => {
    const [first, second, ...others] = anOverview().slots;
    if (first === undefined || second === undefined) throw new Error("A day has more slots.");
    const slots = [{ ...first, created: 2 }, { ...second, attempts: 1, failed: 1, p50Ms: 3, p95Ms: 4 }, ...others];
    const html = pageOf(anOverview({ slots }), { view: "table" });
    expect(html).not.toContain("<figure");
    const rows = [...html.matchAll(/<tbody>(.*?)<\/tbody>/gs)].map(([, body = ""]) => textOf(body).trim());
    expect(rows[0]).toBe("3 Mar, 13:00 0 0 1 1 3 ms 4 ms 3 Mar, 12:30 2 0 0 0 – –");
    expect(textOf(pageOf(anOverview(), { view: "table" }))).toContain("No actions in this range.");
  });
});

test("the overview shows the last 24 hours of a host in a strip, and tells it in words", () => {
  const none: HostHour = { at: NOON, created: 3, completed: 0, failed: 0, attempts: 0, failedAttempts: 0 };
  const good = { ...none, completed: 2, attempts: 2 };
  const retried = { ...good, attempts: 3, failedAttempts: 1 };
  const failed = { ...retried, failed: 1 };
  const hostHours = new Map([["a.example", [none, good, retried, retried, failed, none]]]);
  const html = pageOf(fullRange({ hosts: { named: [named("a.example")], others: null }, hostHours }));
  expect(html).toContain(
    "<title>Last 24 hours: actions failed in 1 hour, retried in 2, no failures in 1, no calls in 2</title>",
  );
  const drawn = [...html.matchAll(/<path class="strip-(\w+)" d="([^"]*)"/g)].map(([, look, path]) => [look, path]);
  expect(drawn).toEqual([
    ["none", "M0 13h3M20 13h3"],
    ["good", "M4 10h3"],
    ["wait", "M8 8.5h7"],
    ["bad", "M16 7h3"],
  ]);
});

test("a failing host that has ended nothing tells of its attempts", () => {
  const down = aFailing({ host: "down.example", completed: 0, failed: 0, failedAttempts: 12 });
  const html = pageOf(fullRange({ failing: [down] }));
  expect(textOf(html)).toContain("down.example 12 failed attempts, retrying");
});

describe("the first steps", () => {
  const stepsOf = (...done: readonly ("action" | "approval")[]): FirstStepProgress => {
    return { done: new Set(done), isNew: !done.includes("action") };
  };

  test("take the place of figures while there is no action, and stand above them until they are done", () => {
    const first = pageOf(anOverview(), { steps: stepsOf() });
    expect(textOf(first)).toContain("Get started 0 of 4 done");
    expect(first).not.toContain("<figure");
    const next = pageOf(anOverview(), { steps: stepsOf("action") });
    expect(textOf(next)).toContain("Get started 1 of 4 done");
    expect(next).toContain("<figure");
    expect(pageOf(anOverview())).not.toContain("Get started");
  });

  test("open the next one, with a call that names a variable for the key, and tick what is done", () => {
    const html = pageOf(anOverview(), { steps: stepsOf("action") });
    expect(textOf(html)).toContain("Send a first action done");
    expect(html.match(/<details open="?[^>]*>\s*<summary>[^<]*/g)?.map((tag) => textOf(tag).trim())).toContain(
      "Approve a request",
    );
    const first = pageOf(anOverview(), { steps: stepsOf() });
    expect(first).toContain("$OUTGATE_API_KEY");
    expect(first).toContain("https://og.example/v1/actions");
    expect(first).toContain('href="/keys/new"');
    expect(pageOf(anOverview(), { steps: stepsOf(), role: "reader" })).not.toContain('href="/keys/new"');
  });
});

describe("a chart", () => {
  test("draws a bar as high as its number, what stands on it above it, and shows what is little", () => {
    const slots = anOverview()
      .slots.slice(0, 3)
      .map((slot, at) => ({ ...slot, completed: [75, 49, 0][at] ?? 0, failed: [25, 1, 0][at] ?? 0 }));
    const html = pageOf(anOverview({ slots }));
    const drawn = (look: string) => new RegExp(`<path class="bar-${look}" d="([^"]*)"`).exec(html)?.[1];
    expect(drawn("good")).toBe("M1 25h8v75h-8zM11 51h8v49h-8z");
    expect(drawn("bad")).toBe("M1 0h8v25h-8zM11 49.5h8v1.5h-8z");
    expect(textOf(html)).toContain("0 50 100");
  });

  test("draws the median in front of what 95 % reach, and nothing where nothing was measured", () => {
    const measured = [
      [50, 100],
      [null, null],
      [25, 75],
    ] as const;
    const slots = anOverview()
      .slots.slice(0, 3)
      .map((slot, at) => {
        const [p50Ms = null, p95Ms = null] = measured[at] ?? [];
        return { ...slot, attempts: 1, p50Ms, p95Ms };
      });
    const html = pageOf(anOverview({ slots }));
    const drawn = [...html.matchAll(/<path class="bar-(main|second)" d="([^"]*)"/g)].map(([, look, path]) => [
      look,
      path,
    ]);
    expect(drawn).toEqual([
      ["main", "M1 0h8v100h-8zM21 25h8v75h-8z"],
      ["second", "M1 50h8v50h-8zM21 75h8v25h-8z"],
    ]);
  });

  test("has axes of round steps from 0 to at least the highest value", () => {
    for (const highest of [0, 1, 3, 4, 7, 19, 20, 21, 99, 123_456, 1_000_000]) {
      const { ticks, top } = chartScale(highest);
      expect([ticks[0], ticks.at(-1), ticks.length <= 6]).toEqual([0, top, true]);
      expect(top).toBeGreaterThanOrEqual(highest);
      const step = ticks[1] ?? 0;
      expect(["1", "2", "5"]).toContain(String(step)[0] ?? "");
    }
    const scale = chartScale(1_000);
    expect([barHeight(0, scale), barHeight(1, scale), barHeight(500, scale)]).toEqual([0, 1.5, 50]);
  });

  test("has no script and no style of its own, and its slots are for the pointer alone", () => {
    const html = pageOf(fullRange());
    expect(html).not.toMatch(/ style=|<script>/);
    const links = [...html.matchAll(/<a href="[^"]*created_before[^"]*"[^>]*>/g)].map(([tag]) => tag);
    expect(links).toHaveLength(48);
    expect(links.every((tag) => tag.includes('tabindex="-1"'))).toBe(true);
    // A slot without anything leads nowhere and says nothing.
    expect(pageOf(anOverview())).not.toMatch(/created_before|<i>[^<]/);
  });
});
