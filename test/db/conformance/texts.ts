import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { cancel } from "../../../src/core/changes.ts";
import { REQUEST_BODY_BYTES_MAX, RESPONSE_BODY_BYTES_MAX } from "../../../src/core/limits.ts";
import { ACCOUNT, aCreation, aDecision, answered, aQuery, later, NOON, writeOf } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, claimed, createdAction } from "./steps.ts";

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
export function testTexts(open: OpenTestStore): void {
  test("an action comes back as it was created, every member of it", async () => {
    await using db = await open();
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

  test("an action without anything that may be absent comes back without it", async () => {
    await using db = await open();
    const action = await createdAction(db.actions, { method: "GET", body: null });
    expect(action).toMatchObject({ body: null, headers: null, callback: null, notifyEmail: null, result: null });
  });

  test("a body keeps every byte, by whatever way it is read", async () => {
    await using db = await open();
    const created = new Map<string, Action>();
    for (const [name, body] of BODIES) {
      const action = await createdAction(db.actions, { body, dedupe: name, keyId: "key_kept" });
      expect(action.body).toBe(body);
      expect((await db.actions.list(aQuery({ limit: 1 }))).actions[0]?.body).toBe(body);
      expect((await db.actions.holderOf(ACCOUNT, "dedupe", name, NOON))?.body).toBe(body);
      expect((await claimed(db.actions, await createdAction(db.actions, { body }))).body).toBe(body);
      created.set(body, action);
    }
    // What the store may remember of a create is gone, and the claim reads it.
    await db.restart();
    for (const [body, action] of created) expect((await claimed(db.actions, action)).body).toBe(body);
    const orphans = (await db.actions.orphans(null, 100, null)).map((action) => String(action.body));
    expect(orphans.toSorted()).toEqual([...created.keys(), ...created.keys()].toSorted());
  });

  test("an answer keeps all of this too", async () => {
    await using db = await open();
    for (const [, body] of BODIES) {
      const done = await attempted(db.actions, await createdAction(db.actions), answered(200, body));
      expect(done.result?.responseBody).toBe(body);
    }
  });

  test("texts of people and machines come back as they were", async () => {
    await using db = await open();
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
      expect((await db.actions.holderOf(ACCOUNT, "dedupe", text, NOON))?.id).toBe(action.id);
      expect((await db.actions.list(aQuery({ dedupe: text }))).actions).toEqual([action]);

      await db.actions.apply(writeOf(cancel(action, { ...aDecision(), actor: `user:${text}`, reason: text })));
      const entry = (await db.actions.timeline(ACCOUNT, action.id)).at(-1);
      expect(entry?.event).toEqual({ type: "cancelled", actor: `user:${text}`, reason: text });
      expect((await db.outbox(action.id))[0]?.target).toBe(`https://hooks.example.com/${text}`);
    }
  });

  describe("the largest", () => {
    test("body of a request and body of an answer come back whole", async () => {
      await using db = await open();
      const request = JSON.stringify({ a: "ä".repeat((REQUEST_BODY_BYTES_MAX - 8) / 2) });
      expect(Buffer.byteLength(request)).toBe(REQUEST_BODY_BYTES_MAX);
      const response = JSON.stringify("\u{1f600}".repeat(RESPONSE_BODY_BYTES_MAX / 4));
      const action = await createdAction(db.actions, { body: request });
      expect(action.body === request).toBe(true);
      const done = await attempted(db.actions, action, answered(200, response));
      expect(done.result?.responseBody === response).toBe(true);
    });

    test("numbers come back as they were", async () => {
      await using db = await open();
      const action = await createdAction(db.actions, { createdAt: new Date(253_402_300_799_999), retries: 100 });
      const done = await attempted(db.actions, action, answered(599), { durationMs: 86_400_000 });
      expect(done).toMatchObject({ retries: 100, result: { durationMs: 86_400_000 } });
      expect(done.createdAt).toEqual(new Date(253_402_300_799_999));
    });
  });
}
