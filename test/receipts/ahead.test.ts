import { expect, test } from "bun:test";
import { maskAction } from "../../src/receipts/masked-action.ts";
import { see, seeAll } from "../../src/receipts/see.ts";
import { storedOf } from "../../src/receipts/seen-action.ts";
import { anAction } from "../support/factory.ts";

const LONG = anAction({
  body: JSON.stringify({ password: "hunter2", list: Array.from({ length: 20_000 }, (_, n) => `n${n}`) }),
  headers: { "X-Plan": "canary" },
});

test("a long action is masked on another thread as it would be on the spot, times and all", async () => {
  const seen = await see(LONG, "public");
  expect(seen).toEqual(maskAction(LONG, "public"));
  expect(seen.body).toContain('"password":"••••(password,7-chars)"');
  expect(seen.hiddenValues).toBe(2);
  expect(storedOf(seen)).toBe(LONG);
});

test("a thread that fails is replaced by another one", async () => {
  // Nothing that is stored has such a title.
  const failed = await see(Object.assign({}, LONG, { title: 7 }), "public").catch(String);
  expect(failed).toStartWith("Error: The masking worker failed");
  expect(await see(LONG, "public")).toEqual(maskAction(LONG, "public"));
});

test("several that are long only together come back in their order", async () => {
  const several = Array.from({ length: 30 }, (_, n) => anAction({ body: `{"n":${n},"pin":1${" ".repeat(1_000)}}` }));
  const seen = await seeAll(several, "public");
  expect(seen).toEqual(several.map((one) => maskAction(one, "public")));
  expect(seen[29]?.body).toContain('"n":29,"pin":"••••(PIN,1-char)"');
});

test("a caller sees its own actions whole among those of others, in their order", async () => {
  const own = anAction({ keyId: "key_own", body: '{"pin":1}' });
  const other = anAction({ keyId: "key_other", body: '{"pin":1}' });
  const agent = { role: "agent", scope: "own", keyId: "key_own", actor: "key:own" } as const;
  const seen = await seeAll([other, own, other], agent);
  expect(seen.map(({ body }) => body)).toEqual(['{"pin":"••••(PIN,1-char)"}', own.body, '{"pin":"••••(PIN,1-char)"}']);
  expect((await see(LONG, { ...agent, role: "owner" })).body).toBe(LONG.body);
  expect((await see(LONG, { ...agent, role: "reader" })).body).not.toBe(LONG.body);
});
