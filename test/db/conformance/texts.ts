import { describe, expect } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { cancel } from "../../../src/core/changes.ts";
import {
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  METADATA_NAMES_MAX,
  METADATA_VALUE_CHARS_MAX,
} from "../../../src/core/limits.ts";
import {
  ACCOUNT,
  aCreation,
  aDecision,
  answered,
  aQuery,
  later,
  NOON,
  writeOf,
  anAction,
  creationOf,
} from "../../support/factory.ts";
import { NO_SEARCH, type Search } from "../../../src/core/search.ts";
import type { StoreTest } from "./store-test.ts";
import { attempted, claimed, createdAction, attemptedAction, stored } from "./steps.ts";
import { parseExtras } from "../../../src/core/extras-schema.ts";

/** Texts that have gone wrong in some store, some driver or some statement. */
const ODD = [
  ["emoji and scripts", "\u{1f600}\u{1f468}\u200d\u{1f469} äß ไทย עברית \u202e"],
  ["quotes", `it's "x" \`y\` ''' """ --`],
  ["what statements take for parameters", "? ?1 :name @name $name $1 ${x} {{x}} %s %% %1$s"],
  ["backslashes", "\\ \\\\ \\n \\u0041 C:\\x"],
  ["ends and breaks", " \t\n\r\n x \u2028\u2029\u0085 "],
  ["statements", "'); DROP TABLE actions; --"],
  ["characters past the first plane", "\u{10ffff}\u{1d11e}\u{20000}\ufeff\ufffd"],
] as const;

/** JSON that must reach the target byte for byte. */
const BODIES = [
  ["numbers as written", '{"a":12345678901234567890,"b":1.0,"c":1e2,"d":-0,"e":0.1000}'],
  ["escapes as written", '{"nul":"\\u0000","a":"\\u0041","line":"\\n","slash":"\\/","\\u006b":1}'],
  ["lone surrogates as escapes", '{"a":"\\ud800","b":"\\udfff\\ud83d"}'],
  ["the same name twice, white space", ' { "a" : 1 ,\n\t"a" : 2 } '],
  ["names with a meaning", '{"__proto__":{"x":1},"constructor":{"prototype":{}},"$ref":"#","toJSON":null}'],
  ["an empty object", "{}"],
  ...ODD.map(([name, text]) => [name, JSON.stringify({ text })] as const),
] as const;

/** What is written comes back to the byte, whatever is in it. */
export function testTexts(test: StoreTest): void {
  test("a search masks as many texts for a right guess of a hidden value as for a wrong one, or its time would tell", async (db) => {
    const url = "https://api.example.com/hooks?api_key=abcdefgh";
    await db.actions.create(aCreation({ url, title: "Rotate abcdefgh" }));
    const masksFor = async (search: Partial<Search>) => {
      let masks = 0;
      const hide = (text: string) => {
        masks += 1;
        return text.replace("abcdefgh", "***");
      };
      const seenAs = { url: hide, text: hide, showsMetadata: () => true };
      const { actions } = await db.actions.list(aQuery({ search: { ...NO_SEARCH, ...search }, seenAs }));
      expect(actions).toEqual([]);
      return masks;
    };
    for (const [right, wrong] of [
      [{ q: "abcd" }, { q: "abce" }],
      [{ title: "abcd" }, { title: "abce" }],
      [{ path: "/hooks?api_key=abcd" }, { path: "/hooks?api_key=abce" }],
    ]) {
      const masks = await masksFor({ ...right });
      expect(masks).toBeGreaterThan(0);
      expect(await masksFor({ ...wrong })).toBe(masks);
    }
  });

  test("an action comes back as it was created, every member of it", async (db) => {
    const creation = aCreation({
      url: "https://User.example.com:8443/p?q='\"#f",
      method: "PATCH",
      body: '{"a":1}',
      headers: { "X-A": "1", "x-b": "two, 'three'" },
      dedupe: "d",
      idempotencyKey: "i",
      retries: 100,
      onUnknown: "stop",
      approve: true,
      callback: "https://hooks.example.com/?a=b&c=%20",
      notifyEmail: "o'hara+x@example.com",
      title: "Refund 12 €",
      extras: { bodyKind: "json", reason: "Asked by\nAnn", metadata: { order: "7", "a.b-c_D": "" } },
      createdAt: later(123),
      createdBy: "mcp:agent 7",
    });
    expect(await db.actions.create(creation)).toEqual({ kind: "created", claimed: null });
    expect(await db.actions.find(ACCOUNT, creation.action.id)).toEqual(creation.action);
  });

  test("an action without anything that may be absent comes back without it", async (db) => {
    const action = await createdAction(db.actions, { method: "GET", body: null });
    expect(action).toMatchObject({ body: null, headers: null, callback: null, notifyEmail: null, result: null });
  });

  test("a body keeps every byte, by whatever way it is read", async (db) => {
    const created = new Map<string, Action>();
    for (const [name, body] of BODIES) {
      const action = await createdAction(db.actions, { body, dedupe: name, keyId: "key_kept" });
      expect(action.body).toBe(body);
      expect((await db.actions.list(aQuery({ limit: 1 }))).actions[0]?.body).toBe(body);
      expect((await db.actions.find(ACCOUNT, action.id))?.body).toBe(body);
      expect((await claimed(db.actions, await createdAction(db.actions, { body }))).body).toBe(body);
      created.set(body, action);
    }
    // What the store may remember of a create is gone, and the claim reads it.
    await db.restart();
    for (const [body, action] of created) expect((await claimed(db.actions, action)).body).toBe(body);
    const orphans = (await db.actions.orphans(null, 100, null)).map((action) => String(action.body));
    expect(orphans.toSorted()).toEqual([...created.keys(), ...created.keys()].toSorted());
  });

  test("an answer keeps all of this too", async (db) => {
    for (const [, body] of BODIES) {
      const done = await attempted(db.actions, await createdAction(db.actions), answered(200, body));
      expect(done.result?.responseBody).toBe(body);
    }
  });

  test("texts of people and machines come back as they were", async (db) => {
    for (const [, text] of ODD) {
      const odd: Partial<Action> = {
        url: `https://api.example.com/${text}`,
        dedupe: text,
        idempotencyKey: text,
        headers: { "X-A": text, [text]: "x" },
        callback: `https://hooks.example.com/${text}`,
        notifyEmail: text,
        createdBy: `key:${text}`,
        title: text,
        extras: { reason: text, metadata: { text, other: text } },
      };
      const action = await createdAction(db.actions, odd);
      expect(action).toMatchObject(odd);
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", text, NOON))?.id).toBe(action.id);
      expect((await db.actions.list(aQuery({ dedupe: text }))).actions).toEqual([action]);

      await db.actions.apply(writeOf(cancel(action, { ...aDecision(), actor: `user:${text}`, reason: text })));
      const entry = (await db.actions.timeline(ACCOUNT, action.id)).at(-1);
      expect(entry?.event).toEqual({ type: "cancelled", actor: `user:${text}`, reason: text });
      expect((await db.outbox(action.id))[0]?.target).toBe(`https://hooks.example.com/${text}`);
    }
  });

  describe("the largest", () => {
    test("body of a request and body of an answer come back whole", async (db) => {
      const request = JSON.stringify({ a: "ä".repeat((REQUEST_BODY_BYTES_MAX - 8) / 2) });
      expect(Buffer.byteLength(request)).toBe(REQUEST_BODY_BYTES_MAX);
      const response = JSON.stringify("\u{1f600}".repeat(RESPONSE_BODY_BYTES_MAX / 4));
      const action = await createdAction(db.actions, { body: request });
      expect(action.body === request).toBe(true);
      const done = await attempted(db.actions, action, answered(200, response));
      expect(done.result?.responseBody === response).toBe(true);
    });

    test("numbers come back as they were", async (db) => {
      const action = await createdAction(db.actions, { createdAt: new Date(253_402_300_799_999), retries: 100 });
      const done = await attempted(db.actions, action, answered(599), { durationMs: 86_400_000 });
      expect(done).toMatchObject({ retries: 100, result: { durationMs: 86_400_000 } });
      expect(done.createdAt).toEqual(new Date(253_402_300_799_999));
    });
  });

  describe("title and extras", () => {
    test("come back by whatever way an action is read", async (db) => {
      const action = await createdAction(db.actions, { ...SET, dedupe: "d" });
      expect(action).toMatchObject(SET);
      expect((await db.actions.list(aQuery())).actions).toEqual([action]);
      expect(await db.actions.findById(action.id)).toEqual(action);
      expect(await db.actions.keyHolder(ACCOUNT, "dedupe", "d", NOON)).toEqual({ id: action.id, status: "pending" });
      expect((await db.actions.changes(ACCOUNT, 0)).changes.map((change) => change.action)).toMatchObject([SET]);
      // What the store may remember of a create is gone, and the claim reads it.
      await db.restart();
      expect(await claimed(db.actions, action)).toMatchObject(SET);
      expect(await db.actions.orphans(null, 9, null)).toMatchObject([SET]);
    });

    test("of a held action come back in the inbox", async (db) => {
      await createdAction(db.actions, { ...SET, approve: true });
      expect((await db.actions.held(ACCOUNT, null, 9)).actions).toMatchObject([SET]);
    });

    const newer = parseExtras('{"reason":"x","later":[1,{"than":"this"}]}') ?? {};

    test.each([
      ["a title", { title: "A title" }],
      ["an empty reason", { extras: { reason: "" } }],
      ["members of a newer version", { extras: newer }],
    ])("come back each by itself: %s", async (db, [, set]) => {
      expect(await createdAction(db.actions, set)).toEqual(
        expect.objectContaining({ title: null, extras: {}, ...set }),
      );
    });

    test("survive changes of the action", async (db) => {
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

    test("are written with their action, as many as it may have", async (db) => {
      await createdAction(db.actions, { extras: { metadata } });
      expect(await db.count("action_metadata")).toBe(METADATA_NAMES_MAX);
    });

    test("are not written by a create that finds an older action, nor without metadata", async (db) => {
      const first = anAction({ dedupe: "d", extras: { reason: "x" } });
      const repeated = anAction({ dedupe: "d", idempotencyKey: "i", extras: { metadata } });
      await db.actions.create(creationOf(first));
      expect((await db.actions.create(creationOf(repeated))).kind).toBe("matched");
      expect(await db.count("action_metadata")).toBe(0);
    });

    test("don't keep the other rows of their create from being written", async (db) => {
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

    test("go with their action", async (db) => {
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

const SET: Partial<Action> = {
  title: "Refund 12.00 EUR to customer 4711",
  body: "amount=1200&charge=ch_1",
  extras: { bodyKind: "form", reason: "The parcel was lost.", metadata: { customer: "4711", order: "7" } },
};
