import { expect, test } from "bun:test";
import { RULE_LIST_MAX, RULES_MAX } from "../../src/core/limits.ts";
import { deadRules, ruleFrom } from "../../src/rules/rule.ts";
import type { RuleDefinition } from "../../src/rules/schemas.ts";
import { quickestMs } from "../support/core.ts";

type Definition = Partial<RuleDefinition>;

const NIGHT = { from: "18:00", to: "08:00", timezone: "UTC" };

/** What is said of the second of two rules. */
const saidOf = (first: Definition, second: Definition) =>
  deadRules([first, second].map((one, n) => ruleFrom({ name: `R${n}`, effect: "hold", ...one }, `rul_${n}`, 1))).get(
    "rul_1",
  );

test.each<[Definition, Definition]>([
  [{}, {}],
  [{}, { when: "key.name == 'a'" }],
  [{ when: "key.name == 'a'" }, { when: "key.name == 'a'", path: "/pay" }],
  [{ keys: ["key_a", "key_b"] }, { keys: ["key_b"] }],
  [{ methods: ["POST", "PUT"] }, { methods: ["PUT"], effect: "refuse" }],
  [{ hosts: ["*.example.com"] }, { hosts: ["api.example.com", "*.eu.example.com"] }],
  [{ hosts: ["api.example.com"] }, { hosts: ["api.example.com:8443"] }],
  [{ path: "/users/*/keys" }, { path: "/users/7/keys/8" }],
  [{ body_kind: "json" }, { body_kind: "json", body_bytes: { over: 10 } }],
  [{ body_bytes: { over: 10 } }, { body_bytes: { over: 10 } }],
  [{ between: NIGHT }, { between: NIGHT, methods: ["PUT"] }],
  [{}, { more_than: { count: 1, minutes: 1 } }],
  [{ effect: "allow" }, { effect: "allow", path: "/pay" }],
])("a rule behind one that is about all of its calls is dead: %j, %j", (first, second) => {
  expect(saidOf(first, second)).toBe('Never applies: "R0" before it decides on all calls that it is about.');
});

test.each<[Definition, Definition]>([
  [{ when: "key.name == 'a'" }, {}],
  [{ keys: ["key_a"] }, { keys: ["key_a", "key_b"] }],
  [{ keys: ["key_a"] }, {}],
  [{ methods: ["POST"] }, { methods: ["POST", "PUT"] }],
  [{ credentials: ["stripe"] }, { credentials: ["stripe", "github"] }],
  [{ hosts: ["api.example.com:8443"] }, { hosts: ["api.example.com"] }],
  [{ hosts: ["api.example.com"] }, { hosts: ["*.example.com"] }],
  [{ hosts: ["*.example.com"] }, { hosts: ["example.com"] }],
  [{ path: "/pay" }, { path: "/payments" }],
  [{ path: "/users/7" }, { path: "/users/*" }],
  [{ body_kind: "json" }, {}],
  [{ body_bytes: { over: 11 } }, { body_bytes: { over: 10 } }],
  [{ between: NIGHT }, { between: { ...NIGHT, days: ["mon"] } }],
  [{ more_than: { count: 1, minutes: 1 } }, {}],
  [{ sum: { member: "body.a", per: "day", timezone: "UTC", limit: 1 } }, {}],
])("a rule that some calls reach is not: %j, %j", (first, second) => {
  expect(saidOf(first, second)).toBeUndefined();
});

test("a rule behind one that allows still sees paths that can be read in different ways", () => {
  expect(saidOf({ effect: "allow" }, { effect: "refuse" })).toStartWith(
    "Applies only where a path can be read in different ways",
  );
});

const NAMES = Array.from({ length: RULE_LIST_MAX - 1 }, (_, n) => `c${n}`);
const STARS = "/*".repeat(500);

// Comparing each with each takes about 30 ms within the bound, and 5 to 9 s without one.
test.each<[string, (n: number) => Definition]>([
  ["credentials", (n) => ({ credentials: [...NAMES, `d${n}`] })],
  ["keys", (n) => ({ keys: [...NAMES, `d${n}`].map((name) => `key_${name}`) })],
  ["hosts", (n) => ({ hosts: [...NAMES, `d${n}`] })],
  ["a path of many segments", (n) => ({ path: `${STARS}/d${n}` })],
])("very many rules that differ only in the last of %s hold the event loop only briefly", (_what, differing) => {
  const rules = Array.from({ length: RULES_MAX }, (_, n) =>
    ruleFrom({ name: `R${n}`, effect: "hold", ...differing(n) }, `rul_${n}`, 1),
  );
  expect(quickestMs(1_000, () => expect(deadRules(rules).size).toBe(0))).toBeLessThan(1_000);
});

test("one rule that was just written can be checked without the others", () => {
  const rules = ["/a", "/a/b", "/a/b/c"].map((path, n) =>
    ruleFrom({ name: `R${n}`, effect: "hold", path }, `rul_${n}`, 1),
  );
  const saysThat = 'Never applies: "R0" before it decides on all calls that it is about.';
  expect(deadRules(rules, "rul_2")).toEqual(new Map([["rul_2", saysThat]]));
});
