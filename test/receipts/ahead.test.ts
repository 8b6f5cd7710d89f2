import { expect, test } from "bun:test";
import { hiddenValues, maskedAction, premaskAll, premask, premaskFor } from "../../src/receipts/masked-action.ts";
import { anAction } from "../support/factory.ts";

const LONG = anAction({
  body: JSON.stringify({ password: "hunter2", list: Array.from({ length: 20_000 }, (_, n) => `n${n}`) }),
  headers: { "X-Plan": "canary" },
});

test("a long action is masked ahead as it would be on the spot, times and all", async () => {
  const ready = await premask(LONG, "public");
  expect(ready).toEqual(LONG);
  expect(maskedAction(ready, "public")).toEqual(maskedAction(LONG, "public"));
  expect(maskedAction(ready, "public").body).toContain('"password":"••••(password,7-chars)"');
  expect(hiddenValues(maskedAction(ready, "public"))).toBe(2);
  // Made once, before it was asked for.
  expect(maskedAction(ready, "public")).toBe(maskedAction(ready, "public"));
});

test("several that are long only together come back in their order", async () => {
  const several = Array.from({ length: 30 }, (_, n) => anAction({ body: `{"n":${n},"pin":1${" ".repeat(1_000)}}` }));
  const ready = await premaskAll(several, "public");
  expect(ready.map((one) => maskedAction(one, "public"))).toEqual(several.map((one) => maskedAction(one, "public")));
  expect(maskedAction(ready[29] ?? LONG, "public").body).toContain('"n":29,"pin":"••••(PIN,1-char)"');
});

test("what is short, or seen whole, is let be", async () => {
  const short = anAction();
  expect(await premask(short, "public")).toBe(short);
  const reader = { keyId: "key_other", actor: "key:other" } as const;
  expect(await premaskFor({ ...reader, role: "owner" }, LONG)).toBe(LONG);
  expect(await premaskFor({ ...reader, role: "reader" }, LONG)).not.toBe(LONG);
});
