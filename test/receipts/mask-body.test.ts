import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import { actionJson } from "../../src/receipts/action-json.ts";
import type { Action } from "../../src/core/action.ts";
import { encodeForm, formPairs } from "../../src/core/body.ts";
import type { Viewer } from "../../src/core/roles.ts";
import { BYTES_SHOWN_MAX } from "../../src/core/limits.ts";
import { maskJsonText, maskResponseText, maskText } from "../../src/receipts/masking.ts";
import { maskAction, seenBytes } from "../../src/receipts/masked-action.ts";
import { anAction, NOON } from "../support/factory.ts";

const KEY = "sk_live_canary0Body1x9Kq2Lm8Vb3Zt7";

const shown = (action: Partial<Action>, viewer: Viewer) => {
  const masked = maskAction(anAction(action), viewer);
  return { masked, json: JSON.parse(actionJson(masked, { now: NOON, receiptUrl: null })) };
};

describe("a form", () => {
  const pairs = [
    ["amount", "1200"],
    ["password", "hunter2"],
    ["client_secret", "x9Kq2Lm8Vb3Zt7Rw4Yp5"],
    ["note", `with ${KEY} & more`],
    ["note", "a=1&token=abc"],
  ] as const;
  const form = { body: encodeForm(pairs), extras: { bodyKind: "form" } } as const;

  test("hides its values by their names from the public, and from deciders what looks generated", () => {
    const names = pairs.map(([name]) => name);
    const values = (viewer: Viewer) => {
      const masked = formPairs(shown(form, viewer).masked.body ?? "");
      expect(masked.map(([name]) => name)).toEqual(names);
      return masked.map(([, value]) => value);
    };
    expect(values("public")).toEqual([
      "1200",
      "••••(password,7-chars)",
      "••••(secret,20-chars,…4Yp5)",
      expect.stringMatching(/^with ••••\(Stripe-.+\) & more$/),
      "a=1&token=••••(token,3-chars)",
    ]);
    expect(values("decider")).toMatchObject({ 0: "1200", 1: "hunter2", 2: "••••(secret,20-chars,…4Yp5)" });
  });

  test("is a form in an answer too, and counts what it hides", () => {
    const { json } = shown(form, "public");
    expect(json).toMatchObject({ body: null, form: { amount: "1200", password: "••••(password,7-chars)" } });
    expect(json.form.note).toHaveLength(2);
    expect(shown(form, "public").masked.hiddenValues).toBe(4);
  });

  test("masked twice is the same", () => {
    const { masked } = shown(form, "public");
    expect(maskAction(masked, "public").body).toBe(masked.body);
  });
});

describe("bytes", () => {
  const bytes = (body: string | Uint8Array, type = "text/plain"): Partial<Action> => ({
    body: Buffer.from(body).toString("base64"),
    headers: { "Content-Type": type },
    extras: { bodyKind: "base64" },
  });

  test("are hidden from the public, but for their size", () => {
    const { masked, json } = shown(bytes("a text"), "public");
    expect(json.base64).toBe("••••");
    expect(masked.hiddenValues).toBe(1);
    expect(seenBytes(masked)).toEqual({ size: 6, start: null, isWhole: false });
  });

  test("are shown to deciders where they are UTF-8, masked", () => {
    const { masked, json } = shown(bytes(`say ${KEY} to it`), "decider");
    expect(json.base64).toBe("••••");
    expect(seenBytes(masked).start).toMatch(/^say ••••\(Stripe-.+\) to it$/);
    expect(masked.hiddenValues).toBe(1);
    expect(shown(bytes("a text"), "decider").masked.hiddenValues).toBe(0);
  });

  test("are shown with their beginning where they are long, without half a character", () => {
    const { masked } = shown(bytes(`a${"ä".repeat(BYTES_SHOWN_MAX)}`), "decider");
    const { start, isWhole, size } = seenBytes(masked);
    expect({ start, isWhole, size }).toEqual({
      start: `a${"ä".repeat((BYTES_SHOWN_MAX - 2) / 2)}`,
      isWhole: false,
      size: 1 + 2 * BYTES_SHOWN_MAX,
    });
    expect(masked.hiddenValues).toBe(1);
  });

  test.each([
    ["no UTF-8", bytes(new Uint8Array([0xff, 0xfe, 0x61]))],
    ["NUL", bytes("a\0b")],
    ["another charset", bytes("a text", "text/plain; charset=utf-16")],
  ])("are not shown as a text that their target does not read: %s", (_, action) => {
    const { masked } = shown(action, "decider");
    expect(seenBytes(masked)).toMatchObject({ start: null, isWhole: false });
    expect(masked.hiddenValues).toBe(1);
  });

  test("unmasked are whole", () => {
    expect(seenBytes(seeWhole(anAction(bytes("x".repeat(9_000)))))).toMatchObject({ size: 9_000, isWhole: true });
  });
});

describe("a text that is XML", () => {
  const masked = (body: string, viewer: Viewer = "public") =>
    shown({ body, extras: { bodyKind: "text" } }, viewer).masked.body;

  test.each([
    ["an element", "<a><password>hunter2</password></a>", "<a><password>••••(password,7-chars)</password></a>"],
    [
      "a prefix and attributes",
      `<wsse:Password Type="x">hunter2</wsse:Password>`,
      `<wsse:Password Type="x">••••(password,7-chars)</wsse:Password>`,
    ],
    ["CDATA", "<token><![CDATA[hunter2]]></token>", "<token><![CDATA[••••(token,7-chars)]]></token>"],
    ["a bracket", "<token>hunt]er2]]</token>", "<token>••••(token,10-chars)</token>"],
    ["white space", "<pin>\n  1234\n</pin>", "<pin>\n  ••••(PIN,4-chars)\n</pin>"],
    ["elements of other names", "<name>hunter2</name>", "<name>hunter2</name>"],
    ["no text", "<password></password><password/>x", "<password></password><password/>x"],
  ])("hides the secrets in %s", (_, body, expected) => {
    expect(masked(body)).toBe(expected);
    expect(masked(expected)).toBe(expected);
  });

  test("is found in answers and in strings of JSON too", () => {
    const answer = "<Credentials><SecretAccessKey>wJalrXUtnFEMI</SecretAccessKey></Credentials>";
    const hidden = "<Credentials><SecretAccessKey>••••(secret,13-chars)</SecretAccessKey></Credentials>";
    expect(maskResponseText(JSON.stringify(answer), "public")).toBe(JSON.stringify(hidden));
    expect(maskJsonText(JSON.stringify({ soap: answer }), "public")).toBe(JSON.stringify({ soap: hidden }));
  });

  test("shows deciders what does not look generated", () => {
    expect(masked("<password>hunter2</password>", "decider")).toBe("<password>hunter2</password>");
    expect(masked("<password>x9Kq2Lm8Vb3Zt7Rw4Yp5</password>", "decider")).toContain("••••(password,20-chars");
  });
});

describe("a text that is a table", () => {
  const masked = (text: string) => maskText(text, "public");

  test.each([
    [
      "commas",
      "email,password,role\nann@a.example,hunter2,admin\n",
      "email,password,role\nann@a.example,••••(password,7-chars),admin\n",
    ],
    ["semicolons and line ends", "token;page\r\nhunter2;2\r\n", "token;page\r\n••••(token,7-chars);2\r\n"],
    ["tabs", "page\tapi key\n2\thunter2", "page\tapi key\n2\t••••(key,7-chars)"],
    [
      "quotes",
      `"name","user password"\n"a,b","hun""ter,2"\n"c",""\n`,
      `"name","user password"\n"a,b","••••(password,10-chars)"\n"c",""\n`,
    ],
    ["a line of another length", "a,pin\n1,2,3\n1,4711\n", "a,pin\n1,2,3\n1,••••(PIN,4-chars)\n"],
    ["columns of other names", "a,b\n1,2\n", "a,b\n1,2\n"],
    ["a sentence", "Your token, please.\nHere it is", "Your token, please.\nHere it is"],
  ])("hides the secrets in %s", (_, text, expected) => {
    expect(masked(text)).toBe(expected);
    expect(masked(expected)).toBe(expected);
  });

  test.each([2, 64, 65, 66, 1_000])("hides the secrets in one of %d columns", (count) => {
    const table = (secret: string) => {
      const names = Array.from({ length: count - 1 }, (_, at) => `column ${at}`);
      return `${[...names, "password"].join(",")}\n${[...names.map(() => "x"), secret].join(",")}\n`;
    };
    expect(masked(table("hunter2"))).toBe(table("••••(password,7-chars)"));
  });
});

test("the private parts of a JSON Web Key are hidden, and the public ones are not", () => {
  const key = { kty: "RSA", n: "public-n", e: "AQAB", d: "private-d", qi: "private-qi" };
  expect(JSON.parse(maskJsonText(JSON.stringify({ keys: [key], d: 1 }), "public"))).toMatchObject({
    keys: [{ n: "public-n", e: "AQAB", d: "••••(key,9-chars)", qi: "••••(key,10-chars)" }],
  });
  const text = '{"d":"x","k":"y"}';
  expect(maskJsonText(text, "public")).toBe(text);
});

test("a text, a title, a reason and metadata are masked by format and name", () => {
  const { masked } = shown(
    {
      body: `token=abc and ${KEY}`,
      title: `Use ${KEY}`,
      extras: { bodyKind: "text", reason: `as ${KEY}`, metadata: { password: "hunter2", note: KEY, plan: "gold" } },
    },
    "public",
  );
  expect(JSON.stringify([masked.body, masked.title, masked.extras])).not.toMatch(/canary|hunter2|=abc/);
  expect(masked.extras.metadata?.["plan"]).toBe("gold");
  expect(masked.hiddenValues).toBe(6);
});
