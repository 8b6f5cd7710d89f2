import { expect, test } from "bun:test";
import { maskedAction } from "../../src/contract/masked.ts";
import { maskAhead, maskOneAhead, readyFor } from "../../src/masking/ahead.ts";
import { anAction } from "../support/factory.ts";

const LONG = anAction({
  body: JSON.stringify({ password: "hunter2", list: Array.from({ length: 20_000 }, (_, n) => `n${n}`) }),
  headers: { "X-Plan": "canary" },
});

test("a long action is masked ahead as it would be on the spot, times and all", async () => {
  const ready = await maskOneAhead(LONG);
  expect(ready).toEqual(LONG);
  expect(maskedAction(ready)).toEqual(maskedAction(LONG));
  expect(maskedAction(ready).body).toContain('"password":"••••"');
  // Made once, before it was asked for.
  expect(maskedAction(ready)).toBe(maskedAction(ready));
});

test("several that are long only together come back in their order", async () => {
  const several = Array.from({ length: 30 }, (_, n) => anAction({ body: `{"n":${n},"pin":1${" ".repeat(1_000)}}` }));
  const ready = await maskAhead(several);
  expect(ready.map(maskedAction)).toEqual(several.map(maskedAction));
  expect(maskedAction(ready[29] ?? LONG).body).toContain('"n":29,"pin":"••••"');
});

test("what is short, or seen whole, is let be", async () => {
  const short = anAction();
  expect(await maskOneAhead(short)).toBe(short);
  const viewer = { keyId: "key_other", actor: "key:other" } as const;
  expect(await readyFor({ ...viewer, role: "owner" }, LONG)).toBe(LONG);
  expect(await readyFor({ ...viewer, role: "reader" }, LONG)).not.toBe(LONG);
});
