import { describe, expect, test } from "bun:test";
import { USUAL_BODY_BYTES_MAX } from "../../src/core/limits.ts";
import { NO_EXTRAS } from "../../src/core/action.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { type RiskInput, findRisks } from "../../src/approvals/risks.ts";

const asked = (members: Partial<RiskInput> = {}): RiskInput => {
  const url = members.url ?? "https://api.example.com/orders";
  const { hostname, host } = new URL(url);
  const usual = {
    method: "POST",
    headers: null,
    body: null,
    callback: null,
    createdBy: "key:agent",
    title: null,
    extras: NO_EXTRAS,
    run: 2,
    lateResult: null,
  } as const;
  return {
    ...usual,
    url,
    hostname,
    host,
    ...NO_HISTORY,
    seenUrl: members.url ?? "https://api.example.com/",
    ...members,
  };
};

const textsOf = (members: Partial<RiskInput>) => findRisks(asked(members)).map(({ text }) => text);

test("plain letters that the URL percent-encodes are said, decoded", () => {
  expect(textsOf({ url: "https://api.example.com/%64elete?%74o=eve%20x" })).toEqual([
    "Plain letters of the URL are percent-encoded. Decoded, its path is /delete?to=eve%20x",
  ]);
});

test("a usual request has no risks", () => {
  const headers = { Authorization: "Bearer x", Accept: "*/*", SOAPAction: "urn:GetOrder" };
  const body = '{"note":"Größe 10 μs, 5 kΩ, Ελληνικά, Привет, 日本語 abc, 👍🏽 👩\u200d💻","lines":"a\\nПривет\\tb"}';
  expect(findRisks(asked({ headers, body, reason: "Zwei\nZeilen", callback: "https://api.example.com/news" }))).toEqual(
    [],
  );
});

test("an earlier run that was answered after it had ended comes first: a further send would do it twice", () => {
  const response = {
    responseBody: null,
    responseTruncated: false,
    responseHeaders: null,
    durationMs: 1,
    at: new Date(0),
  };
  const late = (run: number, responseCode: number) => ({ lateResult: { run, attempt: 1, responseCode, ...response } });
  const keyEnd = { kind: "expired", by: null, agoMs: 60_000 } as const;
  expect(findRisks(asked({ ...late(1, 200), keyEnd })).map(({ level, text }) => `${level}: ${text}`)).toEqual([
    "danger: Run 1 was answered 200: the target has done this already.",
    "danger: Key expired 1 min ago.",
  ]);
  expect([textsOf(late(1, 500)), textsOf(late(2, 200))]).toEqual([[], []]);
});

test("a key that has ended and an earlier rejection come first, as dangers; similar rejections are a warning", () => {
  const by = "user:dana" as const;
  const rejections = [
    { kind: "rejected", by: "user:ann", reason: "Which order?" },
    { kind: "rejected", by, reason: "1,480, not 1,840: see https://erp.example" },
    { kind: "asked", by: "key:agent", reason: "Checked." },
  ] as const;
  const hours = (agoH: number) => agoH * 3_600_000;
  const told = (members: Partial<RiskInput>) =>
    findRisks(asked({ method: "DELETE", ...members })).map(({ level, text }) => `${level}: ${text}`);
  const deletes = "warning: It deletes: the method is DELETE.";
  expect(told({ keyEnd: { kind: "revoked", by: "user:dana", agoMs: hours(2) }, rejections })).toEqual([
    "danger: Key revoked by dana, 2 h ago.",
    "danger: This same request was rejected 2 times in 24 h, last by dana: “1,480, not 1,840: see https[:]//erp[.]example”",
    deletes,
  ]);
  expect(told({ rejections: [{ kind: "rejected", by, reason: null }] })[0]).toBe(
    "danger: This same request was rejected once in 24 h, by dana.",
  );
  const [long = ""] = told({ rejections: [{ kind: "rejected", by, reason: "x".repeat(1_000) }] });
  expect(long).toEndWith(`${"x".repeat(200)}…”`);
  expect(told({ keyEnd: { kind: "revoked", by: null, agoMs: 0 }, similarRejections: 1 })).toEqual([
    "danger: Key revoked, just now.",
    deletes,
    "warning: Similar requests of this key were rejected once in 24 h.",
  ]);
  expect(told({ keyEnd: { kind: "expired", by: null, agoMs: hours(49) }, similarRejections: 100 })).toEqual([
    "danger: Key expired 2 d ago.",
    deletes,
    "warning: Similar requests of this key were rejected at least 100 times in 24 h.",
  ]);
});

test("a host is new to the key", () => {
  expect(textsOf({ isNewHost: true, url: "https://new.example:8443/" })).toEqual([
    "New host: no approved call of this key to new.example:8443 has completed so far.",
  ]);
});

describe("a deletion", () => {
  test.each([
    ["the method", { method: "DELETE" }, "It deletes: the method is DELETE."],
    [
      "the operation of SOAP",
      { headers: { SOAPAction: '"urn:DeleteOrder"' } },
      "It may delete: the header SOAPAction names such an operation.",
    ],
    [
      "the operation of AWS",
      { headers: { "x-amz-target": "DynamoDB_20120810.DeleteTable" } },
      "It may delete: the header x-amz-target names such an operation.",
    ],
    [
      "the same, in another spelling",
      { headers: { "X.Amz.Target": "DynamoDB.DeleteTable" } },
      "It may delete: the header X.Amz.Target names such an operation.",
    ],
    [
      "another method, by a parameter",
      { url: "https://a.example/x?_method=delete" },
      "It may delete: the parameter _method of the URL names the method DELETE.",
    ],
    [
      "another method, by a member",
      { body: '{"_method":"DELETE"}' },
      "It may delete: the member _method of the body names the method DELETE.",
    ],
  ] as const)("is said by %s", (_what, members, text) => {
    expect(textsOf(members)).toEqual([text]);
  });

  test("is not said by a word elsewhere", () => {
    expect(textsOf({ headers: { Accept: "delete" }, url: "https://a.example/delete", body: '"delete"' })).toEqual([]);
  });
});

describe("another method", () => {
  test("is said with the part that names it, once for each", () => {
    const url = "https://a.example/x?_method=put&_method=patch";
    expect(textsOf({ method: "GET", url, headers: { "X-Verb": "patch" } })).toEqual([
      "Its target may take it for another method: the parameter _method of the URL names PUT, the parameter _method of the URL names PATCH and the header X-Verb names PATCH.",
    ]);
    expect(textsOf({ body: '{"_method":"sk_live_0123456789"}' })).toEqual([
      "Its target may take it for another method: the member _method of the body names an unknown method.",
    ]);
  });

  test("is not said where it is the request's own", () => {
    expect(textsOf({ method: "PUT", url: "https://a.example/x?_method=put" })).toEqual([]);
  });
});

describe("characters that cannot be seen", () => {
  test.each([
    ["the URL", { url: "https://a.example/x\u202ey" }],
    ["the URL", { url: "https://a.example/x%E2%80%8By" }],
    ["the URL", { url: "https://a.example/x%0d%0aHost:y" }],
    ["the body", { body: '{"a":"\u202e"}' }],
    ["the body", { body: String.raw`{"a":"\u202E"}` }],
    ["the body", { body: String.raw`{"a":"\udb40\udc41"}` }],
    ["the body", { body: '{"a":"\u00ad"}' }],
    ["the reason", { reason: "as told\u2066" }],
    ["the name of the key", { createdBy: "key:age\u200bnt" as const }],
    ["the headers", { headers: { "X-A": "\u0007" } }],
  ])("are found in %s: %j", (part, members) => {
    expect(textsOf(members)).toContain(`Characters that cannot be seen are in ${part}.`);
  });

  test("are named with all their parts", () => {
    expect(textsOf({ url: "https://a.example/%00", body: '"\u202e"', reason: "\u202e" })).toEqual([
      "Characters that cannot be seen are in the URL, the body and the reason.",
    ]);
  });

  test("are no line breaks as people write them", () => {
    expect(textsOf({ body: '{\r\n\t"a": 1\r\n}', reason: "a\nb" })).toEqual([]);
  });
});

describe("letters that can pass for others", () => {
  test.each([
    ["the host", { url: "https://раураl.example/" }],
    ["the host", { url: "https://xn--pple-43d.com/" }],
    ["the URL", { url: "https://a.example/p%D0%B0ypal" }],
    ["the body", { body: '{"to":"pаypal"}' }],
    ["the body", { body: String.raw`{"to":"p\u0430ypal"}` }],
    ["the body", { body: '{"to":"p\u0301а"}' }],
    ["the body", { body: '{"to":"gοοgle"}' }],
    ["the body", { body: '{"to":"a𝐩𝐚𝐲"}' }],
    ["the reason", { reason: "Αpproved by Ann" }],
    ["the name of the key", { createdBy: "key:аgent" as const }],
  ])("are found in %s: %j", (part, members) => {
    expect(textsOf(members)).toEqual([`Letters that can pass for others are in ${part}.`]);
  });

  test("are not those of words that stand side by side", () => {
    expect(textsOf({ body: '{"a":"Hello Привет","b":"x\\nПривет","c":"10\u03bcs"}' })).toEqual([]);
  });
});

test("what is unusually large is said, with its size", () => {
  expect(
    textsOf({
      url: `https://a.example/${"x".repeat(2_000)}`,
      headers: { "X-A": "y".repeat(5_000) },
      body: JSON.stringify("z".repeat(100_000)),
    }),
  ).toEqual(["Unusually large: a URL of 2,018 characters, headers of 5 kB and a body of 100 kB."]);
});

test("a callback to another host is told, in its ASCII form", () => {
  expect(textsOf({ callback: "https://раураl.example:81/x" })).toEqual([
    "Its callback goes to another host: xn--l-7sba6dbr.example:81.",
  ]);
});

test("bytes that are not unusually large are searched to their end", () => {
  const inBytes = (length: number) => {
    const bytes = Buffer.from(`${"x".repeat(length - 3)}\u200b`);
    return textsOf({ body: bytes.toString("base64"), extras: { bodyKind: "base64" } });
  };
  const hidden = "Characters that cannot be seen are in the body.";
  expect([inBytes(40_000), inBytes(USUAL_BODY_BYTES_MAX)]).toEqual([[hidden], [hidden]]);
  expect(inBytes(USUAL_BODY_BYTES_MAX + 3)).toEqual(["Unusually large: a body of 65.5 kB."]);
});
