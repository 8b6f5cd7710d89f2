import { expect, test } from "bun:test";
import { sqliteDialect } from "../../db/libsql/dialect.ts";
import { createLists } from "../../db/sql/list.ts";
import { NO_SEARCH } from "../../src/core/search.ts";
import { ownMs } from "../support/core.ts";
import { aQuery } from "../support/factory.ts";
import { testSecrets } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";

/** Nothing that anybody sends may hold the event loop longer. */
const GAP_MS_MAX = 50;
const [SEARCHES, READ_MS] = [60, 3];

test("many searches at once leave the event loop to others", async () => {
  // As SQLite reads: in this thread, before it returns.
  const read = () => {
    for (const startedMs = ownMs(); ownMs() - startedMs < READ_MS;);
    return Promise.resolve([]);
  };
  const lists = createLists({ reader: { dialect: sqliteDialect, read }, seal: testSecrets, onUnreadable: () => {} });
  const query = aQuery({ search: { ...NO_SEARCH, title: "order" } });
  await lists.count(query, 10);
  const gap = await maxGapMs(() => Promise.all(Array.from({ length: SEARCHES }, () => lists.count(query, 10))));
  expect(gap).toBeLessThan(GAP_MS_MAX);
});
