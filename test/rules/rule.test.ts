import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/core/domain-error.ts";
import { ActionFacts, type CallFacts, requestFacts, type RuledKey, type RuledRequest } from "../../src/rules/facts.ts";
import { decideByWalks, type CompiledRule, ruleFrom, CompiledRules, storedRule } from "../../src/rules/rule.ts";
import type { RuleDefinition } from "../../src/rules/schemas.ts";
import { quickestMs } from "../support/core.ts";
import { lastOf } from "../support/steps.ts";

type Definition = Partial<RuleDefinition>;

/** With a check that rules which are not asked would say nothing else. */
function decideByRules(rules: readonly CompiledRule[], facts: CallFacts) {
  const decidedBy = (asked: readonly CompiledRule[]) => {
    const fresh = { ...facts, action: new ActionFacts(facts.request) };
    return decideByWalks(lastOf(new CompiledRules(asked).walks(fresh, String)), () => false).ruling;
  };
  const decided = decidedBy(rules);
  expect(decided).toEqual(decidedBy(rules.map((one) => ({ ...one, needs: { fields: [], expression: [] } }))));
  return decided;
}

const REQUEST: RuledRequest = {
  method: "POST",
  url: "https://api.example.com/payments/7",
  headers: null,
  body: '{"amount":100}',
  title: null,
  extras: {},
};

const KEY: RuledKey = { keyId: "key_a", keyName: "ci", role: "agent" };

const rule = (definition: Definition, at = 0) =>
  ruleFrom({ name: `r${at}`, effect: "hold", ...definition }, `rul_${at}`, 1);

interface Asked {
  readonly request?: Partial<RuledRequest>;
  readonly key?: RuledKey;
  readonly now?: string;
}

function decide(
  definitions: readonly Definition[],
  { request = {}, key = KEY, now = "2026-11-23T12:00:00Z" }: Asked = {},
) {
  const decided = decideByRules(definitions.map(rule), requestFacts({ ...REQUEST, ...request }, key, new Date(now)));
  return decided === null ? null : `${decided.effect} ${decided.rule.name}`;
}

const applies = (definition: Definition, asked: Asked = {}) => decide([definition], asked) === "hold r0";

describe("the first rule that applies decides", () => {
  test("in the order of the list", () => {
    expect(decide([])).toBeNull();
    expect(decide([{ methods: ["GET"] }])).toBeNull();
    expect(decide([{ methods: ["GET"] }, { effect: "allow" }, { effect: "refuse" }])).toBe("allow r1");
    expect(decide([{ effect: "refuse", when: "action.body.amount > 50" }, { effect: "allow" }])).toBe("refuse r0");
  });

  test("one that can't be decided holds, whatever its effect, and ends the list", () => {
    for (const effect of ["allow", "hold", "refuse"] as const) {
      expect(decide([{ effect, when: "action.body.nope > 1" }, { effect: "refuse" }])).toBe("hold r0");
    }
  });

  test("and says why", () => {
    const facts = requestFacts(REQUEST, KEY, new Date());
    expect(decideByRules([rule({ when: "action.body.nope > 1" })], facts)?.reason).toBe(
      'It can\'t be decided, so a person decides. The request has no "nope".',
    );
    expect(decideByRules([rule({ effect: "refuse" })], facts)?.isUndecidable).toBe(false);
  });

  test("a condition that fails decides before one that can't be decided", () => {
    expect(decide([{ when: "action.body.nope > 1", keys: ["key_b"] }, { effect: "allow" }])).toBe("allow r1");
    expect(decide([{ when: "action.body.nope > 1", path: "/other" }, { effect: "allow" }])).toBe("allow r1");
    const odd = { url: "https://api.example.com/payments;v=1" };
    expect(decide([{ path: "/payments", when: "action.body.amount > 500" }], { request: odd })).toBeNull();
  });
});

describe("conditions", () => {
  test("all of them hold, or the rule does not apply", () => {
    const all: Definition = { keys: ["key_a"], methods: ["POST"], hosts: ["api.example.com"], path: "/payments" };
    expect(applies(all)).toBe(true);
    const others: readonly Definition[] = [
      { keys: ["key_b"] },
      { methods: ["PUT"] },
      { hosts: ["example.com"] },
      { path: "/a" },
    ];
    for (const other of others) expect(applies({ ...all, ...other })).toBe(false);
  });

  test("a key that replaced another is under the rules about that one", () => {
    const key = { keyId: "key_new", keyName: "ci", role: "agent" as const, replaced: new Set(["key_a"]) };
    expect(applies({ keys: ["key_a"] }, { key })).toBe(true);
    expect(applies({ keys: ["key_b"] }, { key })).toBe(false);
  });

  test("a person has no key", () =>
    expect(applies({ keys: ["key_a"] }, { key: { keyId: null, keyName: "ann", role: "owner" } })).toBe(false));

  test.each([
    ["api.example.com", "https://API.example.com./a", true],
    ["api.example.com", "https://api.example.com:8443/a", true],
    ["api.example.com:8443", "https://api.example.com:8443/a", true],
    ["api.example.com:8443", "https://api.example.com/a", false],
    ["example.com", "https://api.example.com/a", false],
    ["*.example.com", "https://a.b.example.com/a", true],
    ["*.example.com", "https://example.com/a", false],
    ["*.example.com", "https://badexample.com/a", false],
    ["*.example.com", "https://example.com.evil.net/a", false],
    ["*.example.com:8443", "https://a.example.com:8443/a", true],
    ["Bücher.example", "https://xn--bcher-kva.example/a", true],
    ["kelvin.example", "https://\u212Aelvin.example/a", true],
    ["10.0.0.7", "http://10.0.0.07/a", true],
  ])("host %s and %s: %p", (host, url, expected) =>
    expect(applies({ hosts: [host] }, { request: { url } })).toBe(expected),
  );

  test("kind and size of the body", () => {
    expect(applies({ body_kind: "json" })).toBe(true);
    expect(applies({ body_kind: "json" }, { request: { extras: { bodyKind: "json" } } })).toBe(true);
    expect(applies({ body_kind: "none" }, { request: { body: null } })).toBe(true);
    expect(applies({ body_kind: "form" })).toBe(false);
    const four = { body: "AAAAAA==", extras: { bodyKind: "base64" as const } };
    expect(applies({ body_bytes: { over: 3 } }, { request: four })).toBe(true);
    expect(applies({ body_bytes: { over: 4 } }, { request: four })).toBe(false);
    expect(applies({ body_bytes: { over: 2 } }, { request: { body: '"é"' } })).toBe(true);
    expect(applies({ body_bytes: { over: 0 } }, { request: { body: null } })).toBe(false);
  });

  /** 2026-11-23 is a Monday. */
  test.each([
    [{ from: "09:00", to: "17:00" }, "2026-11-23T07:59:59Z", false],
    [{ from: "09:00", to: "17:00" }, "2026-11-23T08:00:00Z", true],
    [{ from: "09:00", to: "17:00" }, "2026-11-23T16:00:00Z", false],
    [{ from: "18:00", to: "08:00" }, "2026-11-23T17:00:00Z", true],
    [{ from: "18:00", to: "08:00" }, "2026-11-23T06:59:59Z", true],
    [{ from: "18:00", to: "08:00" }, "2026-11-23T07:00:00Z", false],
    [{ from: "00:00", to: "24:00", days: ["sun"] }, "2026-11-22T22:59:59Z", true],
    [{ from: "00:00", to: "24:00", days: ["sun"] }, "2026-11-22T23:00:00Z", false],
    [{ from: "18:00", to: "08:00", days: ["fri"] }, "2026-11-28T06:00:00Z", true],
    [{ from: "18:00", to: "08:00", days: ["fri"] }, "2026-11-28T18:00:00Z", false],
    [{ from: "18:00", to: "08:00", days: ["sat"] }, "2026-11-28T06:00:00Z", false],
    // 02:00 to 03:00 does not exist on this day, and comes twice on the other.
    [{ from: "01:30", to: "03:30" }, "2026-03-29T00:29:59Z", false],
    [{ from: "01:30", to: "03:30" }, "2026-03-29T01:00:00Z", true],
    [{ from: "01:30", to: "03:30" }, "2026-03-29T01:30:00Z", false],
    [{ from: "02:00", to: "03:00" }, "2026-03-29T01:00:00Z", false],
    [{ from: "02:00", to: "03:00" }, "2026-10-25T00:00:00Z", true],
    [{ from: "02:00", to: "03:00" }, "2026-10-25T01:59:59Z", true],
    [{ from: "02:00", to: "03:00" }, "2026-10-25T02:00:00Z", false],
  ] as const)("between %j in Berlin, at %s: %p", (window, now, expected) => {
    const between = { ...window, days: "days" in window ? [...window.days] : undefined, timezone: "Europe/Berlin" };
    expect(applies({ between: JSON.parse(JSON.stringify(between)) }, { now })).toBe(expected);
  });
});

describe("a path is that which is sent", () => {
  const at = (path: string, definition: Definition) =>
    decide([definition], { request: { url: `https://api.example.com${path}` } });

  test("dots and codes are resolved", () => {
    for (const path of ["/payments", "/x/../payments", "/x/%2e%2E/payments/1", "/p%61yments"]) {
      expect(at(path, { path: "/payments" })).toBe("hold r0");
    }
    expect(at("/payments/%2e%2e/admin", { effect: "allow", path: "/payments" })).toBeNull();
    expect(at("/payments2", { path: "/payments" })).toBeNull();
    for (const path of ["/", "/payments/"]) expect(at("/payments/7", { path })).toBe("hold r0");
  });

  test.each([
    "/payments/..;/x",
    "/payments%2f..%2fx",
    "/payments/%2E%2e%5cx",
    "/payments//x",
    "/payments/%252e%252e/x",
    "/payments/..%3b/x",
    "/payments%00",
    "/payments/%u002e%u002e/x",
    "/payments%",
  ])("%s is never allowed, and a rule about paths holds it", (path) => {
    expect(at(path, { effect: "allow" })).toBeNull();
    expect(at(path, { effect: "allow", path: "/payments" })).toBeNull();
    expect(at(path, { effect: "allow", when: "true" })).toBeNull();
    expect(at(path, { effect: "refuse", path: "/other" })).toBe("hold r0");
    expect(at(path, { effect: "refuse", when: "action.path.startsWith('/payments')" })).toBe("hold r0");
    expect(at(path, { effect: "refuse" })).toBe("refuse r0");
  });
});

test("a path that differs only by case is not allowed by a rule, and held by one", () => {
  const at = (path: string, definition: Definition) =>
    decide([definition], { request: { url: `https://api.example.com${path}` } });
  for (const [path, prefix] of [
    ["/Payments/7", "/payments"],
    ["/payments/7", "/PAYMENTS"],
    ["/Pay.json", "/pay.json"],
  ] as const) {
    expect(at(path, { effect: "allow", path: prefix })).toBeNull();
    expect(at(path, { effect: "hold", path: prefix })).toBe("hold r0");
    expect(at(path, { effect: "refuse", path: prefix })).toBe("hold r0");
    expect(at(path, { effect: "refuse", path: `${prefix}/8` })).toBeNull();
  }
  for (const path of ["/%C3%84pfel", "/%c3%a4pfel", "/%EF%BD%81%CC%88pfel"])
    expect(at(path, { effect: "hold", path: "/Äpfel" }), path).toBe("hold r0");
  for (const path of ["/%ff", "/apfel"]) expect(at(path, { effect: "hold", path: "/äpfel" }), path).toBeNull();
  // A code of the wildcard is one to whoever decodes the path of the rule.
  expect(at("/any/7", { effect: "refuse", path: "/%2A/7" })).toBe("hold r0");
});

test("a body that its target may read as JSON or a form is held by a rule about these", () => {
  const given = (bodyKind: "text" | "base64", body: string, type: string, kind: NonNullable<Definition["body_kind"]>) =>
    decide([{ effect: "refuse", body_kind: kind }], {
      request: { body, headers: { "Content-Type": type }, extras: { bodyKind } },
    });
  for (const kind of ["json", "form"] as const) {
    expect(given("text", '{"a":1}', "text/plain", kind)).toBe("hold r0");
    expect(given("text", "a=1", "application/x-www-form-urlencoded", kind)).toBe("hold r0");
    expect(given("base64", "YT0x", "application/json", kind)).toBe("hold r0");
    expect(given("text", "a=1", "text/plain", kind)).toBeNull();
  }
  expect(given("text", '{"a":1}', "application/json", "text")).toBe("refuse r0");
  expect(given("text", '{"a":1}', "application/json", "base64")).toBeNull();
});

test("a path that differs only by its ending is not allowed by a rule, and held by one", () => {
  const at = (path: string, definition: Definition) =>
    decide([definition], { request: { url: `https://api.example.com${path}` } });
  for (const ending of [".json", ".", ".a.b", "%20", "%20%20", "%C2%A0", ".json/", ".json%20/"]) {
    expect(at(`/Pay${ending}`, { effect: "allow", path: "/pay" })).toBeNull();
    for (const effect of ["hold", "refuse"] as const)
      expect(at(`/Pay${ending}`, { effect, path: "/pay" })).toBe("hold r0");
    expect(at(`/pay${ending}`, { effect: "hold", path: "/pay/7" })).toBeNull();
  }
  // A dot elsewhere stands for itself, and so does one that begins a name.
  for (const path of ["/pay.v1/7", "/payments.json", "/.pay", "/a/.json", "/"])
    expect(at(path, { effect: "hold", path: "/pay" })).toBeNull();
});

test("a segment that is no UTF-8 hides no other from a rule about paths", () => {
  const decided = (path: string, prefix: string, effect: "hold" | "allow" = "hold") =>
    decide([{ effect, path: prefix }], { request: { url: `https://api.example.com${path}` } });
  for (const path of ["/CAF%C3%A9/x", "/CAF%C3%A9/%FF", "/caf%C3%89/x%ff/y"]) {
    expect(decided(path, "/caf%C3%A9")).toBe("hold r0");
    expect(decided(path, "/caf%C3%A9", "allow")).toBeNull();
  }
  expect(decided("/A%20B/%FF", "/a%20b")).toBe("hold r0");
  expect(decided("/caf%FF/%C3%A9", "/caf%C3%A9")).toBeNull();
});

test("a path that names a script in front is not allowed by a rule, and held by one", () => {
  const at = (path: string, definition: Definition) =>
    decide([definition], { request: { url: `https://api.example.com${path}` } });
  for (const [path, prefix] of [
    ["/index.php/pay", "/pay"],
    ["/App_dev.PHP/Pay.json", "/pay"],
    ["/shop/index.php/pay/7", "/shop/pay"],
  ] as const) {
    expect(at(path, { effect: "allow", path: prefix })).toBeNull();
    for (const effect of ["hold", "refuse"] as const) expect(at(path, { effect, path: prefix })).toBe("hold r0");
  }
  for (const path of ["/index.php", "/index.php/other"]) expect(at(path, { effect: "hold", path: "/pay" })).toBeNull();
  expect(at("/index.php/pay", { effect: "refuse", path: "/index.php" })).toBe("refuse r0");
});

describe("a request that names another method counts as each", () => {
  const override = (name: string, value: string): Asked => ({ request: { headers: { [name]: value } } });
  const hidden = override("X-HTTP-Method-Override", "DELETE");

  test("the strictest decision applies, wherever its rule stands", () => {
    expect(decide([{ effect: "refuse", methods: ["DELETE"] }], hidden)).toBe("refuse r0");
    expect(decide([{ effect: "allow", methods: ["POST"] }, { methods: ["DELETE"] }], hidden)).toBe("hold r1");
    expect(decide([{ methods: ["POST"] }, { effect: "refuse", methods: ["DELETE"] }], hidden)).toBe("refuse r1");
    expect(decide([{ effect: "refuse", when: "action.method == 'DELETE'" }], hidden)).toBe("refuse r0");
  });

  test("allowed is only what is allowed as each", () => {
    expect(decide([{ effect: "allow", methods: ["POST"] }], hidden)).toBeNull();
    expect(decide([{ effect: "allow", methods: ["POST", "DELETE"] }], hidden)).toBe("allow r0");
  });

  test("one that is not known can't be decided", () => {
    const odd = override("X-HTTP-Method-Override", "ERASE");
    expect(decide([{ effect: "refuse", methods: ["DELETE"] }], odd)).toBe("hold r0");
    expect(decide([{ effect: "refuse", when: "action.method == 'DELETE'" }], odd)).toBe("hold r0");
    expect(decide([{ effect: "allow", methods: ["POST"] }], odd)).toBe("hold r0");
  });
});

test("500 rules together are bounded", () => {
  const when = "action.body.l.exists(x, x < 0) || action.body.l.exists(x, x < 0)";
  const body = `{"l":[${Array.from({ length: 1_000 }, (_, at) => at).join(",")}]}`;
  const rules = Array.from({ length: 500 }, (_, at) => rule({ when }, at));
  const decideAll = () =>
    expect(decideByRules(rules, requestFacts({ ...REQUEST, body }, KEY, new Date()))?.reason).toContain(
      "It would take too long",
    );
  expect(quickestMs(1_000, decideAll)).toBeLessThan(1_000);
  expect(decideByRules(rules, requestFacts({ ...REQUEST, body: '{"l":[1]}' }, KEY, new Date()))).toBeNull();
});

describe("a definition", () => {
  const issuesOf = (definition: object): Readonly<Record<string, string>> => {
    try {
      ruleFrom({ name: "a", effect: "hold", ...definition }, "rul_1", 1);
    } catch (error) {
      if (error instanceof DomainError)
        return Object.fromEntries(error.issues.map(({ field, message }) => [field, message]));
    }
    return {};
  };

  test("that is wrong is refused with every field", () => {
    expect(
      issuesOf({
        when: "action.body.a.matches('x')",
        hosts: ["a.example", "a b", "a.example:443"],
        path: "/a;b",
        between: { from: "09:00", to: "09:00", timezone: "Mars/Olympus" },
      }),
    ).toEqual({
      when: `"matches" can't be used. Write like(text, 'pattern'), which takes the same patterns and is never slow. (Line 1, column 14.)`,
      "hosts.1": "Must be a host name or an IP address, with or without a port, like api.example.com or 10.0.0.7:8080.",
      "hosts.2": "Leave out the port 443 of https and the port 80 of http, which are the default.",
      path: "Must begin with one slash, like /v1/payments, and have no query. Leave out white space, backslashes, semicolons, // and codes such as %2f or %25, which targets read in different ways.",
      "between.to": "Must differ from `from`: 00:00 to 24:00 is a whole day.",
      "between.timezone": "Must be a name in the time zone database, like Europe/Berlin.",
    });
  });

  test.each([
    [{ effect: "ask" }, "effect"],
    [{ keys: [] }, "keys"],
    [{ keys: ["ci"] }, "keys.0"],
    [{ methods: ["FETCH"] }, "methods.0"],
    [{ between: { from: "9:00", to: "17:00", timezone: "UTC" } }, "between.from"],
    [{ between: { from: "24:00", to: "17:00", timezone: "UTC" } }, "between.from"],
    [{ body_bytes: {} }, "body_bytes.over"],
    [{ message: "\uD800" }, "message"],
    [{ whem: "true" }, "whem"],
    [{ hosts: ["*"] }, "hosts.0"],
    [{ hosts: ["*.*.example.com"] }, "hosts.0"],
  ])("%j is refused for %s", (definition, field) => expect(issuesOf(definition)).toHaveProperty([field]));

  test("in a row that was altered holds every call", () => {
    const good = JSON.stringify({ name: "a", effect: "allow", when: "true" });
    expect(
      decideByRules(
        [storedRule({ definition: good, id: "rul_1", version: 3 })],
        requestFacts(REQUEST, KEY, new Date()),
      ),
    ).toMatchObject({
      effect: "allow",
      rule: { id: "rul_1", version: 3, name: "a" },
    });
    for (const text of [
      "",
      "null",
      "[]",
      '{"name":"a"}',
      good.replace("true", "true ||"),
      good.replace("name", "nam"),
    ]) {
      const decided = decideByRules(
        [storedRule({ definition: text, id: "rul_1", version: 3 })],
        requestFacts(REQUEST, KEY, new Date()),
      );
      expect(decided).toMatchObject({ effect: "hold", rule: { id: "rul_1", version: 3 } });
    }
  });
});
