import { expect, test } from "bun:test";
import type { Lists } from "../../db/commands/command.ts";
import { readCounts } from "../../db/commands/rules.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { aRuleCount } from "../support/factory.ts";

test("calls of one commit that are due at times far from each other read nothing that lies between", async () => {
  const near = aRuleCount();
  const later = near.start + 300 * DAY_MS;
  const far = aRuleCount({ start: later, from: later, to: later });
  const asked: unknown[] = [];
  const find: Lists["find"] = async (_query, args) => {
    asked.push(...args);
    return args.map(() => []);
  };
  const counts = await readCounts({ lists: { find } }, [near, far, near]);
  const place = { ruleId: near.ruleId, subject: near.subject };
  expect(asked).toEqual([near, far].map(({ from, to }) => ({ ...place, from, to })));
  expect(counts.beyond([near, far])).toEqual([]);
  counts.add([near]);
  expect(counts.beyond([near, far])).toEqual([near]);
  expect(() => counts.add([{ ...near, subject: "other" }])).toThrow("was not read");
});
