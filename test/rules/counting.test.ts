import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/core/domain-error.ts";
import type { RuleCount } from "../../src/core/account-rules.ts";
import { unitsIn } from "../../src/core/decimal.ts";
import { requestFacts, type RuledRequest, withoutIds } from "../../src/rules/facts.ts";
import { decideByWalks, ruleFrom, CompiledRules } from "../../src/rules/rule.ts";
import type { RuleDefinition } from "../../src/rules/schemas.ts";
import { lastOf } from "../support/steps.ts";

const REQUEST: RuledRequest = {
  method: "POST",
  url: "https://api.example.com/pay",
  headers: null,
  body: '{"amount":100}',
  title: null,
  extras: {},
};

const SUM = { member: "body.amount", per: "day", timezone: "UTC", limit: 10_000 } as const;

const rule = (definition: Partial<RuleDefinition>, id = "rul_1") =>
  ruleFrom({ name: id, effect: "hold", ...definition }, id, 1);

interface Asked {
  readonly request?: Partial<RuledRequest>;
  readonly key?: string;
  readonly now?: string;
  readonly beyond?: readonly RuleCount[];
}

function asked(rules: readonly ReturnType<typeof rule>[], { request, key = "key_a", now, beyond = [] }: Asked = {}) {
  const made = requestFacts(
    { ...REQUEST, ...request },
    { keyId: key, keyName: key, role: "agent" },
    new Date(now ?? "2026-03-04T12:34:56Z"),
  );
  const isBeyond = ({ ruleId, subject }: RuleCount) =>
    beyond.some((one) => one.ruleId === ruleId && one.subject === subject);
  return decideByWalks(lastOf(new CompiledRules(rules).walks(made, String)), isBeyond);
}

const body = (text: string, bodyKind?: "form" | "json") => ({
  body: text,
  extras: bodyKind === undefined ? {} : { bodyKind },
});

describe("a budget", () => {
  test.each([
    ["100", "100000000000"],
    ["0.1", "100000000"],
    ["0.30000000000000004", null],
    ["1.50", "1500000000"],
    ["1e2", "100000000000"],
    ["0", "0"],
    ["9007199254740993", "9007199254740993000000000"],
    ["0.000000001", "1"],
    ["0.0000000001", null],
    ["1e400", null],
    ["1e30", null],
    ["99999999999999999999", null],
    ["-1", null],
    ["-0.0", "0"],
    ['"5"', null],
    ["true", null],
    ["null", null],
    ["[5]", null],
    ["{}", null],
  ])("adds up %s exactly or holds it", (written, units) => {
    const { ruling, counts } = asked([rule({ sum: SUM })], { request: body(`{"amount":${written}}`) });
    if (units === null) {
      expect([ruling?.effect, counts]).toEqual(["hold", []]);
      expect(ruling?.reason).toStartWith("It can't be decided, so a person decides. ");
    } else {
      expect(ruling).toBeNull();
      expect(counts).toMatchObject([{ amount: units, limit: "10000000000000" }]);
    }
  });

  test("has 0.1 and 0.2 make 0.3", () => {
    expect((unitsIn("0.1") ?? 0n) + (unitsIn("0.2") ?? 0n)).toBe(unitsIn("0.3") ?? 0n);
  });

  test("holds a call whose number is missing, or has a name that targets may take for it", () => {
    for (const text of ["{}", "[]", '"amount"', '{"Amount":1}', '{"amount":1,"AMOUNT":9}', '{"amount":1,"amount":9}']) {
      const { ruling } = asked([rule({ sum: SUM })], { request: body(text) });
      expect([ruling?.effect, ruling?.isUndecidable], text).toEqual(["hold", true]);
    }
    const { ruling } = asked([rule({ sum: SUM })], { request: { body: null } });
    expect(ruling?.reason).toEndWith('The request has no "amount".');
  });

  test("reads numbers of forms and in lists", () => {
    const form = asked([rule({ sum: SUM })], { request: body("amount=12.50", "form") });
    expect(form.counts[0]?.amount).toBe(String(unitsIn("12.5")));
    expect(asked([rule({ sum: SUM })], { request: body("amount=1e3", "form") }).ruling?.effect).toBe("hold");
    const listed = rule({ sum: { ...SUM, member: 'body.items[1]["unit price"]' } });
    const { counts } = asked([listed], { request: body('{"items":[{},{"unit price":3}]}') });
    expect(counts[0]?.amount).toBe(String(unitsIn("3")));
  });

  test("applies to the call that goes beyond, and what it does not hold goes on to later rules", () => {
    const rules = [rule({ sum: SUM, effect: "refuse" }), rule({ methods: ["POST"] }, "rul_2")];
    const first = asked(rules);
    expect([first.ruling?.rule.id, first.counts.length]).toEqual(["rul_2", 1]);
    const second = asked(rules, { beyond: first.counts });
    expect([second.ruling?.rule.id, second.ruling?.effect, second.counts]).toEqual(["rul_1", "refuse", []]);
    expect(asked(rules, { request: { method: "GET" } }).counts).toHaveLength(1);
    expect(asked([rule({ sum: SUM, methods: ["PUT"] })]).counts).toEqual([]);
  });

  test("that is spent holds nothing that a later rule refuses, and a refused call adds nothing", () => {
    const [budget, refusal] = [rule({ sum: SUM }), rule({ effect: "refuse", path: "/pay" }, "rul_2")];
    const { counts } = asked([budget]);
    expect(counts).toHaveLength(1);
    for (const beyond of [[], counts]) {
      const decided = asked([budget, refusal], { beyond });
      expect(decided).toMatchObject({ ruling: { effect: "refuse", rule: { id: "rul_2" } }, counts: [], reached: null });
    }
  });

  test("counts a request once that names another method, and by both", () => {
    const rules = [rule({ sum: SUM, methods: ["POST"] }), rule({ sum: SUM, methods: ["DELETE"] }, "rul_2")];
    const request = { headers: { "X-HTTP-Method-Override": "DELETE" } };
    expect(asked(rules, { request }).counts.map(({ ruleId }) => ruleId)).toEqual(["rul_1", "rul_2"]);
    expect(asked([rule({ sum: SUM })], { request }).counts).toHaveLength(1);
  });

  test("counts by key, host or a value of metadata", () => {
    const subject = (same: string | undefined, asking: Asked) =>
      asked([rule({ sum: { ...SUM, ...(same === undefined ? {} : { same }) } })], asking).counts[0]?.subject;
    const at = { request: { url: "https://other.example/pay" } };
    const newKey = { keyId: "key_0", keyName: "z", role: "agent", replaced: new Set(["key_1", "key_a"]) } as const;
    const rotated = requestFacts(REQUEST, newKey, new Date("2026-03-04T12:34:56Z"));
    const of = (team: string) => ({ request: { extras: { metadata: { team } } } });
    expect(subject(undefined, { key: "key_b", ...at })).toBe(subject(undefined, {}) ?? "");
    expect(subject("key", { key: "key_b" })).not.toBe(subject("key", {}) ?? "");
    expect(subject("key", at)).toBe(subject("key", {}) ?? "");
    expect(subject("host", at)).not.toBe(subject("host", {}) ?? "");
    expect(subject("metadata.team", of("a"))).not.toBe(subject("metadata.team", of("b")) ?? "");
    expect(subject("metadata.team", of("a"))).toBe(subject("metadata.team", { key: "key_b", ...of("a") }) ?? "");
    const replaced = lastOf(new CompiledRules([rule({ sum: { ...SUM, same: "key" } })]).walks(rotated, String));
    expect(replaced[0]?.counted[0]?.count.subject).toBe(subject("key", {}) ?? "");
    expect(subject("metadata.constructor", {})).toBe(subject("metadata.constructor", of("a")) ?? "");
    const raised = asked([rule({ sum: { ...SUM, limit: 20_000 } })]).counts[0];
    expect(raised?.subject).toBe(subject(undefined, {}) ?? "");
  });

  test("is refused with another effect, path, zone or limit than can be", () => {
    const fieldsOf = (definition: Partial<RuleDefinition>) => {
      try {
        rule(definition);
      } catch (error) {
        if (error instanceof DomainError) return error.issues.map(({ field }) => field);
      }
      return [];
    };
    expect(fieldsOf({ sum: SUM, effect: "allow" })).toEqual(["effect"]);
    expect(fieldsOf({ more_than: { count: 1, minutes: 1 }, effect: "allow" })).toEqual(["effect"]);
    expect(fieldsOf({ sum: { ...SUM, member: "amount" } })).toEqual(["sum.member"]);
    expect(fieldsOf({ sum: { ...SUM, timezone: "+02:00" } })).toEqual(["sum.timezone"]);
    expect(fieldsOf({ sum: { ...SUM, limit: 1e-10 } })).toEqual(["sum.limit"]);
    expect(fieldsOf({ sum: { ...SUM, limit: 2 ** 53 } })).toEqual(["sum.limit"]);
    expect(fieldsOf({ more_than: { count: 1, minutes: 1, same: "path" } })).toEqual(["more_than.same"]);
    for (const member of [
      "body",
      "body.",
      "body[a]",
      "body.a b",
      "body.a.",
      'body["a"b"]',
      `body${"[0]".repeat(65)}`,
    ]) {
      expect(fieldsOf({ sum: { ...SUM, member } }), member).toEqual(["sum.member"]);
    }
  });
});

describe("a count of calls", () => {
  const rules = [rule({ more_than: { count: 20, minutes: 5, same: "request" } })];
  const subject = (request: Partial<RuledRequest>, key?: string) =>
    asked(rules, { request, ...(key === undefined ? {} : { key }) }).counts[0]?.subject ?? "";

  test("takes requests for the same that differ only in UUIDs and long numbers", () => {
    const one = subject({
      url: "https://api.example.com/o/1234567",
      body: '{"id":"0b4b2c1e-1111-4222-8333-444455556666"}',
    });
    const url = "https://API.example.com/o/7654321?try=2";
    expect(subject({ url, body: '{"id":"0B4B2C1E-9999-4222-8333-444455556666"}' })).toBe(one);
    expect(subject({ url, body: '{"id":"other"}' })).not.toBe(one);
    expect(subject({ url: "https://api.example.com/o/12345" })).not.toBe(
      subject({ url: "https://api.example.com/o/54321" }),
    );
    expect(subject({}, "key_b")).not.toBe(subject({}));
    expect(subject({ method: "PUT" })).not.toBe(subject({}));
    expect(asked(rules, { request: { url: "https://api.example.com/a%2fb" } }).ruling).toBeNull();
    expect(withoutIds("a 123456 b 12345 c")).toBe("a # b 12345 c");
  });

  test("counts all of a window, in parts of a sixtieth", () => {
    const at = (now: string) => asked(rules, { now }).counts[0];
    const [one, next] = [at("2026-03-04T12:00:04.999Z"), at("2026-03-04T12:00:05Z")];
    expect([one?.start, next?.start]).toEqual([Date.UTC(2026, 2, 4, 12), Date.UTC(2026, 2, 4, 12, 0, 5)]);
    expect(one?.from).toBe(Date.UTC(2026, 2, 4, 11, 55));
    expect(one).toMatchObject({ amount: "1", limit: "20", asksOnce: true });
  });

  test("counts what is delayed when it is due, with what is due within a window before it or after", () => {
    const runAt = Date.UTC(2026, 2, 5);
    const [count] = asked(rules, { request: { extras: { runAt } } }).counts;
    expect(count).toMatchObject({ start: runAt, from: runAt - 5 * 60_000, to: runAt + 5 * 60_000 });
  });

  test("stays for two days after its window or period", () => {
    const now = "2026-03-31T23:59:00Z";
    const keptMs = (definition: Partial<RuleDefinition>) => {
      const [count] = asked([rule(definition)], { now }).counts;
      return (count?.until ?? 0) - Date.parse(now);
    };
    const [minuteMs, dayMs] = [60_000, 86_400_000];
    expect(keptMs({ more_than: { count: 1, minutes: 60 } })).toBeGreaterThanOrEqual(60 * minuteMs + 2 * dayMs);
    for (const per of ["hour", "day", "month"] as const)
      expect(keptMs({ sum: { ...SUM, per } })).toBeGreaterThanOrEqual(minuteMs + 2 * dayMs);
  });
});
