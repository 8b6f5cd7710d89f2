import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { parseExtras } from "../../../src/core/extras-schema.ts";
import { METADATA_NAMES_MAX, METADATA_VALUE_CHARS_MAX } from "../../../src/core/limits.ts";
import { ACCOUNT, anAction, answered, aQuery, creationOf, later, NOON } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attemptedAction, claimed, createdAction, stored } from "./steps.ts";

const SET: Partial<Action> = {
  title: "Refund 12.00 EUR to customer 4711",
  body: "amount=1200&charge=ch_1",
  extras: { bodyKind: "form", reason: "The parcel was lost.", metadata: { customer: "4711", order: "7" } },
};

/** What a create may set beyond the core is stored with it, and costs nothing where it is not set. */
export function testExtras(open: OpenTestStore): void {
  describe("title and extras", () => {
    test("come back by whatever way an action is read", async () => {
      await using db = await open();
      const action = await createdAction(db.actions, { ...SET, dedupe: "d" });
      expect(action).toMatchObject(SET);
      expect((await db.actions.list(aQuery())).actions).toEqual([action]);
      expect(await db.actions.findById(action.id)).toEqual(action);
      expect(await db.actions.holderOf(ACCOUNT, "dedupe", "d", NOON)).toEqual(action);
      expect((await db.actions.changes(ACCOUNT, 0)).changes.map((change) => change.action)).toMatchObject([SET]);
      // What the store may remember of a create is gone, and the claim reads it.
      await db.restart();
      expect(await claimed(db.actions, action)).toMatchObject(SET);
      expect(await db.actions.orphans(null, 9, null)).toMatchObject([SET]);
    });

    test("of a held action come back in the inbox", async () => {
      await using db = await open();
      await createdAction(db.actions, { ...SET, approve: true });
      expect((await db.actions.held(ACCOUNT, null, 9)).actions).toMatchObject([SET]);
    });

    const newer = parseExtras('{"reason":"x","later":[1,{"than":"this"}]}') ?? {};

    test.each([[{ title: "A title" }], [{ extras: { reason: "" } }], [{ extras: newer }]])(
      "come back each by itself: %p",
      async (set) => {
        await using db = await open();
        expect(await createdAction(db.actions, set)).toEqual(
          expect.objectContaining({ title: null, extras: {}, ...set }),
        );
      },
    );

    test("survive changes of the action", async () => {
      await using db = await open();
      const done = await attemptedAction(db.actions, answered(200), SET);
      expect(done).toMatchObject({ ...SET, status: "completed" });
    });
  });

  describe("rows of metadata", () => {
    const metadata = Object.fromEntries(
      Array.from({ length: METADATA_NAMES_MAX }, (_, at) => [
        `name.${at}`,
        "\u{1f600}".repeat(METADATA_VALUE_CHARS_MAX / 2),
      ]),
    );

    test("are written with their action, as many as it may have", async () => {
      await using db = await open();
      await createdAction(db.actions, { extras: { metadata } });
      expect(await db.count("action_metadata")).toBe(METADATA_NAMES_MAX);
    });

    test("are not written by a create that finds an older action, nor without metadata", async () => {
      await using db = await open();
      const first = anAction({ dedupe: "d", extras: { reason: "x" } });
      const repeated = anAction({ dedupe: "d", idempotencyKey: "i", extras: { metadata } });
      await db.actions.create(creationOf(first));
      expect((await db.actions.create(creationOf(repeated))).kind).toBe("matched");
      expect(await db.count("action_metadata")).toBe(0);
    });

    test("don't keep the other rows of their create from being written", async () => {
      await using db = await open();
      const callback = "https://hooks.example.com/a";
      const held = { ...SET, approve: true, callback, dedupe: "d", idempotencyKey: "i" };
      const action = await createdAction(db.actions, held);
      expect((await db.actions.timeline(ACCOUNT, action.id)).map(({ event }) => event.type)).toEqual([
        "created",
        "held",
      ]);
      expect(await db.outbox(action.id)).toHaveLength(1);
      expect(await db.keyCount()).toBe(2);
    });

    test("go with their action", async () => {
      await using db = await open();
      const long = later(-9 * 86_400_000);
      const old = await attemptedAction(db.actions, answered(200), { ...SET, createdAt: long }, { now: long });
      const young = await createdAction(db.actions, SET);
      expect(await db.count("action_metadata")).toBe(4);
      const times = { finishedUntil: later(-86_400_000), now: NOON };
      expect((await db.store.upkeep.prune(times, "")).deleted).toBe(1);
      expect(await db.actions.find(ACCOUNT, old.id)).toBeNull();
      expect(await stored(db.actions, young)).toMatchObject(SET);
      expect(await db.count("action_metadata")).toBe(2);
    });
  });
}
