import { describe, expect, test } from "bun:test";
import type { StoredLink } from "../../../src/core/store.ts";
import { later } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

const pair = (actionId: string, run = 1): readonly StoredLink[] => [
  { actionId, run, decision: "approve", hash: `yes ${run}` },
  { actionId, run, decision: "reject", hash: `no ${run}` },
];

/** The links of approval mails. */
export function testLinks(open: OpenTestStore): void {
  describe("approval links", () => {
    test("are found as they were kept, also after a restart", async () => {
      await using db = await open();
      const links = pair("act_1");
      expect(await db.store.links.keep(links, later(7))).toEqual(later(7));
      await db.restart();
      for (const link of links) expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
    });

    test("that nobody kept are not there", async () => {
      await using db = await open();
      await db.store.links.keep(pair("act_1"), later(7));
      for (const link of [...pair("act_2"), ...pair("act_1", 2)]) expect(await db.store.links.find(link)).toBeNull();
    });

    test("that are kept again take the new hash, and end when they were to end at first", async () => {
      await using db = await open();
      const links = pair("act_1");
      await db.store.links.keep(links, later(7));
      const again = links.map((link) => ({ ...link, hash: `${link.hash}, again` }));
      expect(await db.store.links.keep(again, later(9))).toEqual(later(7));
      for (const link of again) expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
    });

    test("are all worthless once they are forgotten", async () => {
      await using db = await open();
      for (const id of ["act_1", "act_2"]) await db.store.links.keep(pair(id), later(7));
      await db.store.links.forgetAll();
      for (const link of [...pair("act_1"), ...pair("act_2")]) expect(await db.store.links.find(link)).toBeNull();
    });

    test("of a run stay when the next run has its own", async () => {
      await using db = await open();
      await db.store.links.keep(pair("act_1"), later(7));
      expect(await db.store.links.keep(pair("act_1", 2), later(9))).toEqual(later(9));
      for (const link of pair("act_1")) {
        expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
      }
    });
  });
}
