import { expect, test } from "bun:test";
import { sqliteDialect, type Reader } from "../../db/sql/dialect.ts";
import { createLists } from "../../db/sql/list.ts";
import { SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { NO_SEARCH } from "../../src/core/search.ts";
import { ownMs, quickestOf } from "../support/core.ts";
import { aCreation, aQuery } from "../support/factory.ts";
import { openFileStore, testSecrets } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";

/** Nothing that anybody sends may hold the event loop longer. */
const GAP_MS_MAX = 50;
const [SEARCHES, READ_MS] = [60, 3];

type Read = Reader["read"];

/** Reads as SQLite does: in this thread, before it returns. */
function slowly(read: Read): Read {
  return (statement) => {
    for (const startedMs = ownMs(); ownMs() - startedMs < READ_MS;);
    return read(statement);
  };
}

const readNothing: Read = () => Promise.resolve([]);

/** The last row of each step, whose outcome is read by another statement. */
const FAILED = {
  id: "act_01kjwa5v00e7v8c9x2m4n6p8qr",
  run: 1,
  url: "https://api.example.com/",
  host: "api.example.com",
  response_code: null,
  error_source: "dispatch",
  last_error: "Refused.",
  title: null,
  extras: null,
  bytes: 1,
  is_end: 1,
  matches: 1,
};

function listsOf(read: Read) {
  return createLists({ reader: { dialect: sqliteDialect, read }, seal: testSecrets });
}

test("many searches leave the event loop to others, and read more about what they found, however many steps they take", async () => {
  const outcomes = slowly(readNothing);
  const lists = listsOf((statement) =>
    statement.sql.includes("timeline") ? outcomes(statement) : Promise.resolve([FAILED]),
  );
  const query = aQuery({ search: { ...NO_SEARCH, outcome: "not_sent" } });
  for (const [searches, steps] of [
    [SEARCHES, 1],
    [1, SEARCHES],
  ] as const) {
    const all = () => Promise.all(Array.from({ length: searches }, () => lists.count(query, steps * SEARCH_STEP_ROWS)));
    expect(await quickestOf(GAP_MS_MAX, () => maxGapMs(all))).toBeLessThan(GAP_MS_MAX);
  }
});

test("many lists of large actions at once leave the event loop to others", async () => {
  await using db = await openFileStore();
  const body = JSON.stringify("x".repeat(100_000));
  for (let made = 0; made < 20; made += 1) await db.actions.create(aCreation({ body }));
  const list = () => db.actions.list(aQuery({ limit: 20 }));
  expect((await list()).actions.length).toBeGreaterThan(10);
  const all = () => Promise.all(Array.from({ length: SEARCHES }, list));
  expect(await quickestOf(GAP_MS_MAX, () => maxGapMs(all))).toBeLessThan(GAP_MS_MAX);
});
