import { expect, test } from "bun:test";
import { daysOf, sumOf, usesOf } from "../../src/credentials/service.ts";
import { KEYS } from "../http/stub-server.ts";
import { openCredentials } from "./rig.ts";

test("uses are counted by credential and day, the oldest first", () => {
  const row = (subject: string, daysAgo: number, count: number) => ({ subject, daysAgo, count });
  const uses = usesOf({ counts: [row("a", 0, 3), row("b", 6, 1), row("a", 2, 4)], isWhole: false });
  expect(daysOf(uses, "a")).toEqual([0, 0, 0, 0, 4, 0, 3]);
  expect(daysOf(uses, "b")).toEqual([1, 0, 0, 0, 0, 0, 0]);
  expect(sumOf(daysOf(uses, "c"))).toBe(0);
  expect(uses.isWhole).toBe(false);
});

test("an answer to an owner says how often a credential was sent in the last week, also to try it", async () => {
  await using rig = await openCredentials();
  const { json: added } = await rig.add();
  await rig.add({ name: "other" });
  expect(added["uses_last_week"]).toBe(0);
  const { clock } = rig.app.engine;
  await rig.ended(await rig.create());
  clock.advance(3 * 86_400_000);
  await rig.ended(await rig.create({ body: { n: 2 } }));
  await rig.call("POST", "/v1/credentials/stripe-live/test", { url: rig.target.url });
  const uses = async (key?: string) => {
    const { json } = await rig.call("GET", "/v1/credentials", undefined, key);
    return (json.data as readonly object[]).map((one) => ("uses_last_week" in one ? one.uses_last_week : null));
  };
  expect(await uses()).toEqual([0, 3]);
  expect(await uses(KEYS.agent)).toEqual([null, null]);
  clock.advance(5 * 86_400_000);
  expect(await uses()).toEqual([0, 2]);
  const changed = await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: true });
  expect(changed.json["uses_last_week"]).toBe(2);
});
