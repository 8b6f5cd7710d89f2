import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { findSecrets } from "../../src/receipts/find-secrets.ts";
import { textEntropy } from "../../src/receipts/random-text.ts";
import { SECRET_FORMATS } from "../../src/receipts/secret-formats.ts";
import { exampleOf } from "../support/secret-examples.ts";
import { words } from "../support/words.ts";

const textsOf = (text: string) => findSecrets(text).map(({ start, end }) => text.slice(start, end));

describe("a secret of a known format", () => {
  test("there are at least eighty issuers' formats, each by a beginning of its own", () => {
    expect(new Set(SECRET_FORMATS.map(({ name }) => name)).size).toBeGreaterThanOrEqual(80);
    const prefixes = SECRET_FORMATS.map(({ prefix }) => prefix);
    expect(new Set(prefixes).size).toBe(prefixes.length);
  });

  test.each(SECRET_FORMATS)("is found in any text: $name ($prefix)", (format) => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { whole, secret } = exampleOf(format, seed);
      for (const text of [whole, `{"a":"${whole}"}`, `see ${whole}, then`, `https://x.example/${whole}/y?z=1`]) {
        expect(textsOf(text).some((found) => found.startsWith(secret))).toBeTrue();
      }
    }
  });

  const urls = SECRET_FORMATS.filter(({ isPlace, prefix }) => isPlace === true && prefix.includes("/"));

  test.each(urls)("is found however its URL is written: $name ($prefix)", (format) => {
    const { secret } = exampleOf(format, 3);
    const { host, pathname } = new URL(`https://${format.prefix}`);
    const first = `%${pathname.charCodeAt(1).toString(16)}`;
    const written = [
      `${host.toUpperCase()}${pathname}`,
      `${host}:443${pathname}`,
      `${host}.${pathname}`,
      `${host}//${pathname}`,
      `${host}/x/%2E./.${pathname}`,
      ...(pathname === "/" ? [] : [`${host}/${first}${pathname.slice(2)}`]),
    ];
    for (const url of written) expect(textsOf(`see https://${url}${secret}.`).join()).toContain(secret);
    expect(textsOf(`https://not.${host}.example${pathname}${secret}`).filter((found) => found.includes("/"))).toEqual(
      [],
    );
  });

  test.each(
    words(`
    npm_please_delete_everything_from_the_database sk-proj-Delete-Everything-From-Production-Now-Please
    task_test_results_of_last_week_are_in re_delete_all_the_customers_and_their_orders_too sk_live_please-delete
    hooks.slack.com/services/overview HOOKS.slack.com/%73ervices/overview/of/this/week
    hooks.slack.com/a1b2C3d4e5F6g7H8i9J0k1L2 cus_NffrFeUfNV2Hib pi_3MtwBwLkdIwHu7ix28a3tqPa T01ABCDEF
    0b1e9a2c-5f2d-4d7e-9c3b-7a6f5e4d3c2b 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  `),
  )("is not seen in what somebody wrote, or in an id: %s", (text) => {
    expect(textsOf(text)).toEqual([]);
  });
});

describe("a secret of a known structure", () => {
  const jwt =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
  const keys = [
    generateKeyPairSync("rsa", pem({ modulusLength: 2_048 }, "pkcs8")).privateKey,
    generateKeyPairSync("ec", pem({ namedCurve: "P-256" }, "sec1")).privateKey,
    generateKeyPairSync("ed25519", pem({}, "pkcs8")).privateKey,
  ].map(String);

  test("is found where it parses", () => {
    expect(textsOf(`the ${jwt}, and`)).toEqual([jwt]);
    const chain = Buffer.from(JSON.stringify({ alg: "RS256", x5c: ["MIIC".repeat(1_000)] })).toString("base64url");
    expect(textsOf(`the ${chain}.eyJzdWIiOiIxIn0.c2ln, and`)).toEqual([`${chain}.eyJzdWIiOiIxIn0.c2ln`]);
    expect(textsOf("Basic dXNlcjpwYXNz")).toEqual(["dXNlcjpwYXNz"]);
    expect(textsOf("bearer 3f9a8b7c6d5e4f3a2b1c")).toEqual(["3f9a8b7c6d5e4f3a2b1c"]);
    for (const key of keys) {
      expect(textsOf(`before ${key}after`)).toEqual([key.trimEnd()]);
      expect(textsOf(JSON.stringify(key))).toHaveLength(1);
      // As it stands in YAML, and in a variable of one line.
      const indented = key.trimEnd().replaceAll("\n", "\n  ");
      expect(textsOf(`key: |\n  ${indented}\nport: 80`)).toEqual([indented]);
      expect(textsOf(`KEY="${key.trimEnd().replaceAll("\n", " ")}"`)).toHaveLength(1);
      // An answer was cut within it.
      expect(textsOf(key.slice(0, 90))).toEqual([key.slice(0, 90)]);
    }
  });

  const random = "x9Kq2Lm8Vb3Zt7Rw4Yp5Ab6Cd7Ef8Gh9Jk1Mn2Pq3Rs4Tu5Vw6Xy7Z";
  const discord = `${Buffer.from("123456789012345678").toString("base64url")}.GxYz1A.${random.slice(0, 38)}`;
  const adyen = `AQE${random}==-${random.slice(0, 43)}=-W+t7NF;s4}%=kUSD`;
  const entra = `h6P8Q~${random.slice(0, 34)}`;
  const wif = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
  const [first, last] = [`${random}AAAAAAAA1a2B`.slice(0, 64), "b3Zt7Rw4Yp5=="];

  test.each([
    [
      "Telegram bot token",
      "curl 123456789:AAH9kq2Lm8Vb3Zt7Rw4Yp5Ab6Cd7Ef8Gh9J now",
      "123456789:AAH9kq2Lm8Vb3Zt7Rw4Yp5Ab6Cd7Ef8Gh9J",
    ],
    ["Discord bot token", `say ${discord}, then`, discord],
    ["Adyen API key", `X-API-Key is ${adyen} here`, adyen],
    ["Microsoft Entra secret", `secret=${entra}, tenant`, entra],
    ["Bitcoin key", `spend with ${wif}.`, wif],
    [
      "PuTTY key",
      `PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\n${first}\n${last}\nPrivate-MAC: ${"0a".repeat(20)}\n`,
      `${first}\n${last}`,
    ],
    ["token", "Authorization: Token x9Kq2Lm8Vb3Zt7Rw", "x9Kq2Lm8Vb3Zt7Rw"],
    ["key", "ApiKey x9Kq2Lm8Vb3Zt7Rw==, api-key x9Kq2Lm8Vb3Zt7Rv", "x9Kq2Lm8Vb3Zt7Rw== x9Kq2Lm8Vb3Zt7Rv"],
    ["Okta token", "SSWS 00x9Kq2Lm8Vb3Zt7Rw4Yp5", "00x9Kq2Lm8Vb3Zt7Rw4Yp5"],
    [
      "Digest response",
      'Digest username="ann", nonce="7f", response="6629fae49393a05397450978507c4ef1", opaque="5c"',
      "6629fae49393a05397450978507c4ef1",
    ],
  ])("is found where it is a %s", (_name, text, secrets) => {
    expect(textsOf(text).join(" ")).toBe(secrets);
  });

  test.each([
    "at 12345678:AA, or 123456789:AAdelete-all-the-customers-of-the-shop",
    `${Buffer.from("delete all customers").toString("base64url")}.GxYz1A.${random.slice(0, 38)}`,
    "MTIz.GxYz1A.abc, v1.234567.890, www.gitlab.com",
    `data:image/jpeg;base64,${"AQEBAQEB".repeat(20)}==`,
    "Private-Lines: 1\nDeleteEverythingFromTheProductionDatabaseNowPleaseAndThenTheBackups\nPrivate-MAC: 00",
    `commit ${"0a".repeat(20)}, sha256 digest ${"9f86d081".repeat(8)} of it`,
    "the page token delete-all-customers, a token transfer-5000",
    `response="${"0a".repeat(16)}"`,
    "-----BEGIN X-----\ntransfer 5000 to Bob\n-----END X-----",
    "-----BEGIN X-----\nMOVE all money to account 1234 and delete everything that there is\n-----END X-----",
    `-----BEGIN X-----\n${"M".repeat(64)}\n-----END X-----`,
    `-----BEGIN PGP MESSAGE-----\n\n${"transfer 5000 to Bob ".repeat(9).trim()}\n-----END PGP MESSAGE-----`,
    `-----BEGIN PGP MESSAGE-----\n\n${"pays5000 fromBank ".repeat(9).trim()}\n-----END PGP MESSAGE-----`,
    "Bearer delete-all",
    "Bearer please-delete-all-of-the-customers",
    "Basic plan for 12",
    "eyJust.a.text that is none",
  ])("is not seen in what only looks like one: %p", (text) => {
    expect(textsOf(text)).toEqual([]);
  });
});

test("entropy is that of the text's own characters, in bits", () => {
  expect(textEntropy("")).toBe(0);
  expect(textEntropy("aaaa")).toBe(0);
  expect(textEntropy("abcdabcd")).toBeCloseTo(2);
});

function pem(options: object, type: "pkcs8" | "sec1") {
  const encoding = { publicKeyEncoding: { type: "spki", format: "pem" }, privateKeyEncoding: { type, format: "pem" } };
  // Safe: node's types want the literal types of each overload, which a helper for three of them can't give.
  return { ...options, ...encoding } as never;
}
