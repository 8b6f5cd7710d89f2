import { test } from "bun:test";
import type { Store } from "../../../src/core/store.ts";
import type { OpenTestStore, TestStore } from "../../support/store.ts";

/** Declares a test that gets a store of its own. */
export interface StoreTest {
  (name: string, run: (db: TestStore, store: Store) => Promise<void>, timeoutMs?: number): void;
  /** One test for each row; `%s` in the name is the row, or the first of its values. */
  each: <const Row>(rows: readonly Row[]) => (name: string, run: (db: TestStore, row: Row) => Promise<void>) => void;
}

/** How tests are declared whose stores are opened like this. */
export function storeTest(open: OpenTestStore): StoreTest {
  const declare = (name: string, run: (db: TestStore, store: Store) => Promise<void>, timeoutMs?: number) => {
    const body = async () => {
      await using db = await open();
      await run(db, db.store);
    };
    test(name, body, timeoutMs);
  };
  const each: StoreTest["each"] = (rows) => (name, run) => {
    for (const row of rows) declare(name.replace("%s", String([row].flat()[0])), (db) => run(db, row));
  };
  return Object.assign(declare, { each });
}
