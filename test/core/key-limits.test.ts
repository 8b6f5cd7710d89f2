import { describe, expect, test } from "bun:test";
import { budgetSpent, expiryIssues, limitRefusal, readHosts, utcDay } from "../../src/core/key-limits.ts";
import { KEY_EXPIRY_YEARS_MAX } from "../../src/core/limits.ts";
import { aRequest, later, NOON } from "../support/factory.ts";

const NONE = { hosts: null, methods: null, dailyActions: null, expiresAt: null };

const mayCall = (hosts: readonly string[], url: string) =>
  limitRefusal({ ...NONE, hosts }, { ...aRequest({ method: "POST" }), url }) === null;

describe("the hosts of a key", () => {
  test.each<readonly [allowed: string, url: string, may: boolean]>([
    ["api.stripe.com", "https://api.stripe.com/v1", true],
    ["api.stripe.com", "https://API.Stripe.com.:443/v1", true],
    ["api.stripe.com", "http://api.stripe.com:8080/", true],
    ["api.stripe.com", "https://api.stripe.com.evil.example/", false],
    ["api.stripe.com", "https://evil.example/api.stripe.com", false],
    ["api.stripe.com", "https://api.stripe.com@evil.example/", false],
    ["api.stripe.com", "https://xapi.stripe.com/", false],
    ["api.stripe.com", "https://stripe.com/", false],
    // A test of callbacks asks before the URL is checked.
    ["api.stripe.com", "nowhere", false],
    ["*.internal.example", "https://a.internal.example/", true],
    ["*.internal.example", "https://a.b.c.internal.example/", true],
    ["*.internal.example", "https://internal.example/", false],
    ["*.internal.example", "https://xinternal.example/", false],
    ["*.internal.example", "https://a.internal.example.evil.example/", false],
    ["*.internal.example:8443", "https://a.internal.example:8443/", true],
    ["*.internal.example:8443", "https://a.internal.example/", false],
    ["api.example:443", "https://api.example/", true],
    ["api.example:443", "http://api.example/", false],
    ["api.example:80", "http://api.example/", true],
    ["10.0.0.7:8080", "http://10.0.0.7:8080/", true],
    ["10.0.0.7:8080", "http://10.0.0.7/", false],
    ["10.0.0.7", "http://0x0a.0.0.7/", true],
    ["[::1]:3000", "http://[0:0::1]:3000/", true],
    ["[::1]", "http://[::2]/", false],
  ])("%s and a call to %s: %s", (allowed, url, may) => {
    const { hosts, issues } = readHosts([allowed]);
    expect(issues).toEqual([]);
    expect(mayCall(hosts, url)).toBe(may);
  });

  test("are kept in normal form and once, and every wrong one is named", () => {
    expect(readHosts(["API.Example.com.", "api.example.com", "*.Straße.example"])).toEqual({
      hosts: ["api.example.com", "*.xn--strae-oqa.example"],
      issues: [],
    });
    const wrong = [
      "https://a.example",
      "a.example/x",
      "*",
      "*.",
      "a.*.example",
      "*.*.example",
      "a b",
      "a.example:99999",
      "",
    ];
    expect(readHosts(["fine.example", ...wrong]).issues.map(({ field }) => field)).toEqual(
      wrong.map((_, at) => `hosts.${at + 1}`),
    );
  });
});

test("a refusal names the limit, what was asked and who can change it, and nothing of the path", () => {
  const limits = { ...NONE, hosts: ["a.example"], methods: ["GET"] as const };
  const elsewhere = limitRefusal(limits, aRequest({ method: "GET", url: "https://b.example:8443/secret" }));
  expect(elsewhere).toMatchObject({ code: "forbidden" });
  expect(elsewhere?.message).toStartWith("This key may call only a.example, and not b.example:8443. An owner can");
  const written = limitRefusal(limits, aRequest({ method: "POST", url: "https://a.example/" }));
  expect(written?.message).toStartWith("This key may use only GET, and not POST. An owner can");
  expect(limitRefusal(limits, aRequest({ method: "GET", url: "https://a.example/" }))).toBeNull();
  expect(limitRefusal(NONE, aRequest({ method: "DELETE", url: "https://b.example/" }))).toBeNull();
  const spent = budgetSpent(7, NOON);
  expect(spent.code).toBe("forbidden");
  expect(spent.message).toContain(
    "may create 7 actions a day (UTC), retries included, and has done so. It may create or retry more from 2026-03-05T00:00:00.000Z",
  );
});

test("a key ends in the future, and within ten years", () => {
  const year = 365 * 86_400_000;
  expect(expiryIssues(later(1), NOON)).toEqual([]);
  expect(expiryIssues(later(KEY_EXPIRY_YEARS_MAX * year), NOON)).toEqual([]);
  for (const end of [NOON, later(-1), later(KEY_EXPIRY_YEARS_MAX * year + 1), new Date(Number.NaN)]) {
    expect(expiryIssues(end, NOON).map(({ field }) => field)).toEqual(["expires_at"]);
  }
  expect([utcDay(NOON), utcDay(later(43_199_999)), utcDay(later(43_200_000))]).toEqual([20_516, 20_516, 20_517]);
});
