import { describe, expect, test } from "bun:test";
import { COUNTED_MAX, HELD_COUNTED_MAX, HELD_HOSTS_SHOWN_MAX } from "../../src/core/limits.ts";
import type { SeenInbox } from "../../src/pages/inbox.tsx";
import { anAction } from "../support/factory.ts";
import { inboxOf } from "./inbox-page.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const ALIKE = [1, 2, 3].map((at) =>
  anAction({ status: "awaiting_approval", approve: true, url: `https://api.example.com/refunds/${at}` }),
);

const SEEN = ALIKE.map((action) => maskAction(action, "decider"));

const QUERY = { by: null, host: null, age: null, after: null };

const inboxWith = (inbox: Partial<SeenInbox>): SeenInbox => {
  const none = { requesters: [], hosts: [], hasMoreHosts: false, histories: new Map() };
  return { actions: SEEN, after: null, total: 3, matching: 3, ...none, ...inbox };
};

const countOf = (html: string) => /id="count"[^>]*>([^<]*)</.exec(html)?.[1];

describe("the inbox", () => {
  test("says how many requests wait and match, and where it stops counting", () => {
    const counted = (inbox: Partial<SeenInbox>, host: string | null) =>
      countOf(inboxOf(ALIKE, { inbox: inboxWith(inbox), query: { ...QUERY, host } }));
    expect(counted({ total: 9_999, matching: 9_999 }, null)).toBe("9,999 awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: HELD_COUNTED_MAX }, null)).toBe("10,000+ awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: 7 }, "a.example")).toBe("7 of 10,000+ awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: HELD_COUNTED_MAX }, "a.example")).toBe(
      "10,000+ of 10,000+ awaiting approval",
    );
  });

  test("says what its menus leave out, and where they stop counting", () => {
    const hosts = [
      { host: "busy.example", count: COUNTED_MAX },
      { host: "quiet.example", count: 7 },
    ];
    const html = inboxOf(ALIKE, { inbox: inboxWith({ hosts, hasMoreHosts: true }) });
    expect(html).toContain("1,000+");
    expect(html).toContain(`Only ${hosts.length} hosts are listed.`);
    expect(hosts.length).toBeLessThan(HELD_HOSTS_SHOWN_MAX);
    const requesters = Array.from({ length: 20 }, (_, at) => {
      return { keyId: `key_${at}`, createdBy: `key:${at}` as const, count: 1 };
    });
    expect(inboxOf(ALIKE, { inbox: inboxWith({ requesters }) })).toContain("At most 20 are listed");
    const whole = inboxOf(ALIKE, { inbox: inboxWith({ hosts, requesters: requesters.slice(1) }) });
    expect(whole).not.toContain("are listed");
  });

  test("says of look-alikes that others may be on the other pages", () => {
    const isPart = (html: string) => html.includes("On this page · ");
    const groups = inboxOf(ALIKE, { inbox: inboxWith({}) });
    expect(groups).toContain("3 ×");
    expect(isPart(groups)).toBe(false);
    expect(isPart(inboxOf(ALIKE, { inbox: inboxWith({ after: "2.act_x" }) }))).toBe(true);
    expect(isPart(inboxOf(ALIKE, { inbox: inboxWith({}), query: { ...QUERY, after: "2.act_x" } }))).toBe(true);
    expect(isPart(inboxOf([], { inbox: inboxWith({ actions: SEEN.slice(1), after: "2.act_x" }) }))).toBe(false);
  });
});
