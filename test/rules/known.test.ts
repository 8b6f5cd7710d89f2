import { expect, test } from "bun:test";
import type { RuleRow, RuleStore } from "../../src/core/account-rules.ts";
import { TURN_MS_MAX } from "../../src/core/limits.ts";
import { createKnownRules } from "../../src/rules/known.ts";
import { ACCOUNT, anAuditEntry, aRule, OTHER_ACCOUNT } from "../support/factory.ts";
import { turnsDuring } from "../support/core.ts";
import { FakeClock } from "../support/clock.ts";
import { until } from "../support/until.ts";
import { openFileStore } from "../support/store.ts";

test("a change of one account's rules has those of no other account read again, on this node and on others", async () => {
  await using db = await openFileStore();
  const { rules } = db.store;
  const listed: string[] = [];
  const counted: RuleStore = { ...rules, list: (accountId) => (listed.push(accountId), rules.list(accountId)) };
  const known = createKnownRules({ ...db.store, rules: counted }, new FakeClock(), (text) => text);
  const write = async (accountId: string, ids: readonly string[]) => {
    const expected = await rules.findVersion(accountId);
    const rows = ids.map((id) => aRule(id, { accountId }));
    expect(await rules.replace({ accountId, rules: rows, expected, audit: anAuditEntry() })).toBe(true);
  };
  const idsOf = (accountId: string) => known.knownRules(accountId).map(({ id }) => id);
  await write(ACCOUNT, ["rul_a"]);
  await write(OTHER_ACCOUNT, ["rul_b"]);
  await known.reload();
  expect([idsOf(ACCOUNT), idsOf(OTHER_ACCOUNT), listed.splice(0).toSorted()]).toEqual([
    ["rul_a"],
    ["rul_b"],
    [ACCOUNT, OTHER_ACCOUNT].toSorted(),
  ]);
  const before = known.knownRules(OTHER_ACCOUNT);
  await write(ACCOUNT, ["rul_a", "rul_c"]);
  // All that wait for it at once are served by one read.
  await Promise.all([known.reloadAccount(ACCOUNT), known.reloadAccount(ACCOUNT), known.reload()]);
  expect([idsOf(ACCOUNT), listed.splice(0)]).toEqual([["rul_a", "rul_c"], [ACCOUNT]]);
  await write(ACCOUNT, []);
  await known.reload();
  expect([idsOf(ACCOUNT), listed]).toEqual([[], [ACCOUNT]]);
  // Not compiled again either.
  expect(known.knownRules(OTHER_ACCOUNT)).toBe(before);
});

test("a rule is compiled again only if it was changed", async () => {
  await using db = await openFileStore();
  const { rules } = db.store;
  const known = createKnownRules(db.store, new FakeClock(), (text) => text);
  const written = async (rows: readonly RuleRow[]) => {
    const expected = await rules.findVersion(ACCOUNT);
    await rules.replace({ accountId: ACCOUNT, rules: rows, expected, audit: anAuditEntry() });
    await known.reload();
    return known.knownRules(ACCOUNT);
  };
  const [one, other] = [aRule("rul_a"), aRule("rul_b")];
  const before = await written([one, other]);
  const after = await written([{ ...other, version: 2 }, one]);
  expect(after.map(({ id, version }) => [id, version])).toEqual([
    ["rul_b", 2],
    ["rul_a", 1],
  ]);
  expect(after[1]).toBe(before[0]);
  expect(after[0]).not.toBe(before[1]);
});

test("what a rule was before a change is forgotten, although others are kept", async () => {
  await using db = await openFileStore();
  const { rules } = db.store;
  const read: WeakRef<RuleRow>[] = [];
  const list = async (accountId: string) => {
    const rows = await rules.list(accountId);
    for (const row of rows) if (row.id === "rul_b") read.push(new WeakRef(row));
    return rows;
  };
  const known = createKnownRules({ ...db.store, rules: { ...rules, list } }, new FakeClock(), (text) => text);
  for (let version = 1; version <= 10; version += 1) {
    const expected = await rules.findVersion(ACCOUNT);
    const rows = [aRule("rul_a"), aRule("rul_b", { version })];
    await rules.replace({ accountId: ACCOUNT, rules: rows, expected, audit: anAuditEntry() });
    await known.reload();
    expect(known.knownRules(ACCOUNT)).toHaveLength(2);
  }
  await until(() => {
    Bun.gc(true);
    return read.filter((row) => row.deref() !== undefined).length <= 3;
  });
});

test("rules are compiled with pauses for whoever reads all of them, and once", async () => {
  await using db = await openFileStore();
  const { rules } = db.store;
  const rows = ["rul_a", "rul_b", "rul_c"].map((id) => aRule(id));
  await rules.replace({ accountId: ACCOUNT, rules: rows, expected: "", audit: anAuditEntry() });
  const clock = new FakeClock();
  // Each rule takes long.
  const slow = {
    now: () => clock.now(),
    monotonicMs() {
      clock.stall(TURN_MS_MAX);
      return clock.monotonicMs();
    },
  };
  const known = createKnownRules(db.store, slow, (text) => text);
  await known.reloadAccount(ACCOUNT);
  const turns = await turnsDuring(() => known.compiledRules(ACCOUNT));
  const compiled = await known.compiledRules(ACCOUNT);
  expect(compiled.map(({ id }) => id)).toEqual(["rul_a", "rul_b", "rul_c"]);
  expect(turns).toBeGreaterThan(1);
  expect(known.knownRules(ACCOUNT)).toBe(compiled);
});
