import {
  PutHostSettingsBody,
  hostSettingsFrom,
  hostSettingsText,
  NO_HOST_SETTINGS,
  parseHostSettings,
} from "../../src/api/host-settings.ts";
import { describe, expect, test } from "bun:test";
import { BACKOFF_CAP_MS_MAX } from "../../src/core/limits.ts";
import { type HostSettingsRow, KnownHostSettings } from "../../src/core/host-settings.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { bodyCheck } from "../../src/api/check.ts";
import { checkHost } from "../../src/core/target.ts";
import { ACCOUNT, NOON, OTHER_ACCOUNT } from "../support/factory.ts";
import { effectiveRetrySettings, isOneOfStatuses, NO_RETRY_SETTINGS } from "../../src/core/retry.ts";

const SERVER = { timeoutMs: 30_000, backoff: { baseMs: 2_000, capMs: 60_000 }, giveUpOn: [] };

const CALLED = { accountId: ACCOUNT, host: "a.example" };

const row = (host: string, settings: Partial<HostSettingsRow["settings"]>, accountId = ACCOUNT): HostSettingsRow => ({
  accountId,
  host,
  settings: { ...NO_HOST_SETTINGS, ...settings },
  updatedAt: NOON,
  updatedBy: "key:owner",
});

/** A store whose rows and version a test sets. */
function storeOf(rows: HostSettingsRow[]) {
  const store = {
    rows,
    at: "1",
    lists: 0,
    version: () => Promise.resolve(store.at),
    list(accountId: string | null) {
      store.lists += 1;
      return Promise.resolve(store.rows.filter((one) => accountId === null || one.accountId === accountId));
    },
  };
  return store;
}

describe("what applies to an attempt", () => {
  test("is what the action says, else the host, else the account, else the server; each member by itself", async () => {
    const known = new KnownHostSettings(
      storeOf([
        row("", { timeoutMs: 10_000, giveUpOn: ["4xx"], backoff: { baseMs: 100, capMs: 100 } }),
        row("a.example", { timeoutMs: 20_000, giveUpOn: [] }),
        row("a.example", { timeoutMs: 1_000 }, OTHER_ACCOUNT),
      ]),
      SERVER,
    );
    await known.reload();
    const backoff = { baseMs: 100, capMs: 100 };
    expect(known.retrySettings({ ...CALLED, extras: {} })).toEqual({ timeoutMs: 20_000, backoff, giveUpOn: [] });
    const own = { ...NO_RETRY_SETTINGS, timeoutMs: 5_000, giveUpOn: [401] };
    expect(known.retrySettings({ ...CALLED, extras: { timeoutMs: 5_000, giveUpOn: [401] } })).toEqual({
      timeoutMs: 5_000,
      backoff,
      giveUpOn: [401],
    });
    const other = known.retrySettings({ ...CALLED, host: "a.example:8443", extras: {} });
    expect(other).toEqual({ timeoutMs: 10_000, backoff, giveUpOn: ["4xx"] });
    expect(known.retrySettings({ ...CALLED, accountId: "acc_three", extras: {} })).toBe(SERVER);
    expect(effectiveRetrySettings(SERVER, [own])).toEqual({ ...SERVER, timeoutMs: 5_000, giveUpOn: [401] });
  });

  test("follows changes of other nodes by the version, and reads nothing while it is the same", async () => {
    const store = storeOf([row("a.example", { maxConcurrent: 2 })]);
    const known = new KnownHostSettings(store, SERVER);
    const changed: string[] = [];
    known.onChange((accountId) => changed.push(accountId));
    await known.reload();
    await known.reload();
    expect([store.lists, changed]).toEqual([1, [ACCOUNT]]);
    store.rows = [row("a.example", { maxConcurrent: 3 }, OTHER_ACCOUNT)];
    store.at = "2";
    await known.reload();
    expect(known.findLimits(CALLED)).toEqual({ maxConcurrent: null, maxPerSecond: null });
    expect(known.findLimits({ ...CALLED, accountId: OTHER_ACCOUNT }).maxConcurrent).toBe(3);
    // The account without settings too.
    expect(changed.splice(0).slice(1).toSorted()).toEqual([ACCOUNT, OTHER_ACCOUNT].toSorted());
    store.rows = [...store.rows, row("b.example", { maxConcurrent: 1 })];
    store.at = "3";
    await known.reload();
    expect(changed).toEqual([ACCOUNT]);
  });

  test("of one account is read again after a change of this process", async () => {
    const store = storeOf([]);
    const known = new KnownHostSettings(store, SERVER);
    await known.reload();
    store.rows = [row("a.example", { maxPerSecond: 5 })];
    await known.refresh(ACCOUNT);
    expect(known.findLimits(CALLED).maxPerSecond).toBe(5);
    store.rows = [];
    await known.refresh(ACCOUNT);
    expect(known.findLimits(CALLED).maxPerSecond).toBeNull();
  });
});

test("a status is one of those that end an action by its number or its class", () => {
  const matches = (patterns: Parameters<typeof isOneOfStatuses>[0]) =>
    [302, 401, 422, 503].filter((code) => isOneOfStatuses(patterns, code));
  expect([matches([]), matches([401]), matches(["4xx"]), matches(["3xx", 503])]).toEqual([
    [],
    [401],
    [401, 422],
    [302, 503],
  ]);
});

describe("settings", () => {
  const check = bodyCheck(PutHostSettingsBody);

  test("are the same after they were stored, and none if the row is no JSON", () => {
    const body = check({
      timeout_ms: 120_000,
      backoff: { base_ms: 100, cap_ms: BACKOFF_CAP_MS_MAX },
      give_up_on: [300, 599, "3xx"],
      max_per_second: 0.01,
      max_concurrent: 1,
    });
    const settings = hostSettingsFrom(body);
    expect(parseHostSettings(hostSettingsText(settings))).toEqual(settings);
    expect(hostSettingsText(NO_HOST_SETTINGS)).toBe("{}");
    for (const text of ["", "[]", "{"]) expect(parseHostSettings(text)).toEqual(NO_HOST_SETTINGS);
  });

  test("keep a limit beside what another version stores, and beside what is beyond the bounds of requests today", () => {
    for (const more of ['"other":1', '"timeout_ms":999999999', '"backoff":{"base_ms":1,"cap_ms":9999999999}']) {
      const settings = parseHostSettings(`{"max_per_second":1,"default_credential":"stripe-live",${more}}`);
      expect(settings).toMatchObject({ maxPerSecond: 1, defaultCredential: "stripe-live" });
    }
  });

  test.each([
    [{ timeout_ms: 999 }, "timeout_ms"],
    [{ backoff: { base_ms: 200, cap_ms: 100 } }, "backoff"],
    [{ give_up_on: [299] }, "give_up_on.0"],
    [{ give_up_on: [401, "2xx"] }, "give_up_on.1"],
  ])("refuse %j", (body, field) => {
    const refused = (() => {
      try {
        return check(body);
      } catch (error) {
        return error;
      }
    })();
    expect(refused).toBeInstanceOf(DomainError);
    expect((refused as DomainError).issues.map((issue) => issue.field)).toEqual([field]);
  });
});

test("a host is named as actions have it, and one that no action has is refused", () => {
  const named = (text: string) => checkHost(text, "validation_error");
  expect(["API.Example.com.", " a.example:8443 ", "[::1]:8080", "10.0.0.7", "::1"].map(named)).toEqual([
    "api.example.com",
    "a.example:8443",
    "[::1]:8080",
    "10.0.0.7",
    "[::1]",
  ]);
  for (const text of [
    "",
    "*.a.example",
    "https://a.example",
    "a.example/x",
    "a.example:443",
    "a.example:80",
    "[::1]:443",
  ]) {
    expect(() => named(text)).toThrow();
  }
  // The last part of an address is no port.
  expect(named("[2001:db8::443]")).toBe("[2001:db8::443]");
});
