import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import * as mask from "../../src/receipts/masking.ts";
import { Masking, maskFor, parameterKind, SECRET_NAMES, secretKind } from "../../src/receipts/mask-rules.ts";
import { looksGenerated } from "../../src/receipts/random-text.ts";
import { VIEWERS, type Viewer } from "../../src/core/roles.ts";
import { SECRET_FORMATS } from "../../src/receipts/secret-formats.ts";
import { quickestMs } from "../support/core.ts";
import { GROWTH_MAX, growthOf } from "../support/growth.ts";
import { exampleOf } from "../support/secret-examples.ts";
import { runsOf, SEED } from "../support/long.ts";

console.log(`mask: seed ${SEED}`);

/** What is masked the same way for everybody. Of the rest each test says for whom. */
const masksFor = (viewer: Viewer) => ({
  maskText: (text: string) => mask.maskText(text, viewer),
  maskUrl: (text: string) => mask.maskUrl(text, viewer),
  maskJsonText: (text: string) => mask.maskJsonText(text, viewer),
  maskResponseText: (text: string) => mask.maskResponseText(text, viewer),
});

const { maskText, maskUrl, maskJsonText, maskResponseText } = masksFor("public");

const isSensitiveName = (name: string) => secretKind(name) !== null;

const isSensitiveParameter = (name: string) => parameterKind(name) !== null;

/** The words that name secrets, each written as people write it. */
const SENSITIVE: readonly string[] = Object.values(SECRET_NAMES).flat();

const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => name.replaceAll("_", "-"),
  (name) => name.replaceAll("_", "."),
  (name) => name.replaceAll("_", ""),
  camel,
  (name) => capital(camel(name)),
  (name) => `x-${name}`,
  (name) => `user_${name}`,
  (name) => `db.${name}.old`,
  (name) => `user${capital(camel(name))}`,
  (name) => `${camel(name)}Hash`,
  (name) => `my${name.replaceAll("_", "").toUpperCase()}`,
  (name) => `user[${name}]`,
  (name) => `${name}1`,
];

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_found, email: string) => email.toUpperCase());
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

const HARMLESS = [
  ..."max_tokens author authors authority key keys code codes sig access number order_number api card private".split(
    " ",
  ),
  ..."keyCard number_card passport passenger compass secretary tokenizer tokenized sessions_left pinned spinner".split(
    " ",
  ),
  ..."Spin signed design monkey turkey idempotency_key sort_key accessible keyboard cookiecutter opinion".split(" "),
  ..."signing status_code zip_code key_version keyring card_type pantry companion passable seed connection private-number".split(
    " ",
  ),
  "",
  "_",
  "ключ",
  "🗝️",
];

test("the table of names has what secrets are called in forms, configurations and mails", () => {
  const called =
    "pass passcode pw creds mnemonic seed_phrase connection_string dsn totp mfa_code verification_code ssn pan";
  expect(called.split(" ").filter((name) => !SENSITIVE.includes(name))).toEqual([]);
});

describe("a name", () => {
  test.each(SENSITIVE)("with %s among its words has a secret for a value, however it is spelt", (word) => {
    const names = SPELLINGS.map((spelling) => spelling(word));
    expect(names.filter((name) => !isSensitiveName(name))).toEqual([]);
    expect(names.filter((name) => !isSensitiveParameter(name))).toEqual([]);
  });

  test.each(HARMLESS)("%s has none", (name) => {
    expect(isSensitiveName(name)).toBe(false);
  });

  const keys = (before: string) => [
    `${before}_key`,
    `${before}-key`,
    `${before.toUpperCase()}_KEY`,
    `${before}Key`,
    `x.${before}.key1`,
  ];

  test.each("account storage encryption stripe master shared api.version access_level routing".split(" "))(
    "that ends in key has a secret for a value: %s_key",
    (before) => {
      expect(keys(before).filter((name) => !isSensitiveName(name))).toEqual([]);
    },
  );

  test.each("public primary foreign sort partition idempotency dedupe ordering flow".split(" "))(
    "that ends in key has none where the key is no secret: %s_key",
    (before) => {
      expect(keys(before).filter((name) => isSensitiveName(name))).toEqual([]);
    },
  );

  test.each(["key", "code", "sig", "access", "X-Key", "authCode", "sort_key", "zip.code"])(
    "%s has one in a query string",
    (name) => {
      expect(isSensitiveParameter(name)).toBe(true);
    },
  );

  test.each(["APIkey", "apiKEY", "APIKey", "JWTToken", "accessJWT", "OAuthToken", "x-amz-signature", "cardNumber"])(
    "%s is taken apart at its capitals",
    (name) => {
      expect(isSensitiveName(name)).toBe(true);
    },
  );

  test.each(["newpassword", "dbpasswd", "clientsecret", "accesstoken", "x-refreshtoken"])(
    "%s has one, though its words are not separated",
    (name) => {
      expect(isSensitiveName(name)).toBe(true);
    },
  );

  test("number has one where that is the number of a card", () => {
    const cards = ["4111111111111111", "5555 5555 5555 4444", "3782-822463-10005"];
    for (const card of cards) {
      expect(mask.maskJsonText(`{"card":{"number":"${card}"}}`, "public")).not.toContain(card);
      expect(mask.maskJsonText(`{"card":{"Number" : ${card.replaceAll(/\D/g, "")}}}`, "public")).toContain(
        "card-number",
      );
      expect(mask.maskJsonText(`{"card":{"number":"${card}"}}`, "decider")).toContain(card);
    }
    for (const other of ['"4111111111111112"', '"1111111111111117"', "4111", '"INV-4711"', "null"]) {
      const json = `{"number":${other}}`;
      expect(mask.maskJsonText(json, "public")).toBe(json);
    }
  });

  test("of 300 characters is not taken apart: its value is masked", () => {
    expect(isSensitiveName("a".repeat(300))).toBe(true);
  });
});

test.each([
  ["a", "••••(password,1-char)"],
  ["fifteen chars..", "••••(password,15-chars)"],
  ["sixteen longchar", "••••(password,16-chars,…char)"],
  ["sixteen chars ==", "••••(password,16-chars,…hars)"],
  ["🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝🗝", "••••(password,15-chars)"],
  ['sixteen chars "&=', "••••(password,17-chars,…hars)"],
])("the mask of %p is %p", (secret, masked) => {
  expect(maskFor(secret, "password")).toBe(masked);
});

describe("headers", () => {
  const VISIBLE =
    "accept content-type content-length user-agent idempotency-key x-request-id webhook-id webhook-timestamp retry-after soapaction x-amz-target";

  test.each(VIEWERS)("show the values of eleven, however they are spelt, to the %s", (viewer) => {
    const names = VISIBLE.split(" ");
    expect(names).toHaveLength(11);
    const headers = Object.fromEntries(names.flatMap((name) => [name, name.toUpperCase()]).map((name) => [name, "v"]));
    expect(mask.maskHeaders(headers, viewer)).toEqual(headers);
  });

  test.each([
    ["authorization", "credentials"],
    ["cookie", "cookie"],
    ["x-api-key", "key"],
    ["x-plan", "header"],
    ["accept-language", "header"],
    ["user_agent", "header"],
    ["webhook-signature", "signature"],
    ["referer", "header"],
  ])("hide that of %s from the public and in mails, whatever it is", (name, kind) => {
    for (const viewer of ["public", "mail"] as const) {
      const hidden = (value: string) => mask.maskHeaders({ [name]: value }, viewer)[name];
      expect(hidden("short")).toBe(`••••(${kind},5-chars)`);
      expect(hidden("Bearer 0123456789abcdef")).toBe(`••••(${kind},23-chars,…cdef)`);
    }
  });

  test.each([
    ["Authorization", "Bearer delete-all", "Bearer delete-all"],
    ["Authorization", "Bearer x9Kq2Lm8Vb3Zt7Rw", "Bearer ••••(Bearer-token,16-chars,…t7Rw)"],
    ["Authorization", "Token x9Kq2Lm8Vb3Zt7Rw", "Token ••••(credentials,16-chars,…t7Rw)"],
    ["X-Plan", "gold", "gold"],
    ["X-Plan", "x9Kq2Lm8Vb3Zt7Rw", "••••(header,16-chars,…t7Rw)"],
    ["Cookie", "theme=dark; sid=x9Kq2Lm8Vb3Zt7Rw; n=1", "theme=dark; sid=••••(cookie,16-chars,…t7Rw); n=1"],
    ["X-Sig", 'k="x9Kq2Lm8Vb3Zt7Rw==",n="1"', 'k="••••(header,18-chars,…t7Rw)",n="1"'],
    ["X-Command", "delete-production-database-now", "delete-production-database-now"],
  ])("%s: %s is shown to whoever decides as %s", (name, value, shown) => {
    expect(mask.maskHeaders({ [name]: value }, "decider")).toEqual({ [name]: shown });
  });

  test("hide what has a secret's format in the others too", () => {
    const headers = { "User-Agent": "bot (Bearer x9Kq2Lm8Vb3Zt7Rw)" };
    for (const viewer of VIEWERS) {
      expect(mask.maskHeaders(headers, viewer)).toEqual({
        "User-Agent": "bot (Bearer ••••(Bearer-token,16-chars,…t7Rw))",
      });
    }
  });
});

/** A token as its issuer would draw it, and its mask. */
const TOKEN = "x9Kq2Lm8Vb3Zt7Rw";

const TOKEN_MASK = "••••(token,16-chars,…t7Rw)";

const GITHUB = "ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

const GITHUB_MASK = "••••(GitHub-token,40-chars,…q7R8)";

describe("JSON", () => {
  test.each([
    ['{"password":"hunter2"}', '{"password":"••••(password,7-chars)"}'],
    ['{"password":"0123456789abcdef"}', '{"password":"••••(password,16-chars,…cdef)"}'],
    ['{"password":""}', '{"password":""}'],
    ['{"pin":1234}', '{"pin":"••••(PIN,4-chars)"}'],
    ['{"cardNumber":4111111111111111}', '{"cardNumber":"••••(card-number,16-chars,…1111)"}'],
    ['{"otp":null,"jwt":true,"cvc":-0.5e1}', '{"otp":null,"jwt":true,"cvc":"••••(card-code,6-chars)"}'],
    [
      '{"session":{"id":[1,"]}"],"x":{"y":"\\"}"}},"n":1.0}',
      '{"session":{"id":["••••(session,1-char)","••••(session,2-chars)"],"x":{"y":"••••(session,2-chars)"}},"n":1.0}',
    ],
    [
      '{"credentials":[{"pin":"b"},"c",false],"n":2}',
      '{"credentials":[{"pin":"••••(PIN,1-char)"},"••••(PIN,1-char)",false],"n":2}',
    ],
    ['[[{"a":[{"apiKey":"k"}]}]]', '[[{"a":[{"apiKey":"••••(key,1-char)"}]}]]'],
    [
      '{ "secret" : "s" , "n" : 12345678901234567890 ,\n "token"\t:\r\n7 }',
      '{ "secret" : "••••(secret,1-char)" , "n" : 12345678901234567890 ,\n "token"\t:\r\n"••••(token,1-char)" }',
    ],
    ['{"p\\u0061ssword":"s"}', '{"p\\u0061ssword":"••••(password,1-char)"}'],
    ['{"secret":"a\\"b","c":"d"}', '{"secret":"••••(secret,3-chars)","c":"d"}'],
    ['{"token":"\\ud83d\\udddd0123456789abc\\ud83d\\udddd"}', '{"token":"••••(token,15-chars)"}'],
    ['{"secret":1,"secret":2}', '{"secret":"••••(secret,1-char)","secret":"••••(secret,1-char)"}'],
    [`{"note":"Bearer ${TOKEN}"}`, '{"note":"Bearer ••••(Bearer-token,16-chars,…t7Rw)"}'],
    [`{"${GITHUB}":1}`, `{"${GITHUB_MASK}":1}`],
    ['"token=abc&a=1"', '"token=••••(token,3-chars)&a=1"'],
    [
      '{"text":"{\\"password\\":\\"hunter2\\",\\"a\\":1.0}"}',
      '{"text":"{\\"password\\":\\"••••(password,7-chars)\\",\\"a\\":1.0}"}',
    ],
    ['"{\\"a\\":1,\\"access_token\\":\\"abcd"', '"{\\"a\\":1,\\"access_token\\":\\"••••(token,4-chars)\\""'],
    ['"https://api.example.com/?token=abc&page=2"', '"https://api.example.com/?token=••••(token,3-chars)&page=2"'],
  ])("%s is shown to the public as %s", (json, masked) => {
    expect(maskJsonText(json)).toBe(masked);
  });

  test.each([
    '{"password":"hunter2","pin":1234,"cardNumber":4111111111111111,"auth":"Bearer delete-all"}',
    '{"session":{"op":"transfer","amount":5000,"to":"Bob"},"auth":["delete","all"],"token":true}',
    '{"token":"delete-all-customers-and-their-orders","secret":"production-database","key":"DeleteEverythingNow"}',
    '{"token":"{\\"op\\":\\"delete everything\\"}"}',
    '{"pem":"-----BEGIN X-----\\ntransfer 5000 to Bob\\n-----END X-----"}',
  ])("%s is shown to whoever decides as it is", (json) => {
    expect(mask.maskJsonText(json, "decider")).toBe(json);
  });

  test.each([
    [`{"token":"${TOKEN}","n":1}`, `{"token":"${TOKEN_MASK}","n":1}`],
    [
      `{"session":{"id":"${TOKEN}","op":"transfer"}}`,
      '{"session":{"id":"••••(session,16-chars,…t7Rw)","op":"transfer"}}',
    ],
    [`{"note":"${TOKEN}"}`, `{"note":"${TOKEN}"}`],
    [`{"note":"use ${GITHUB} now"}`, `{"note":"use ${GITHUB_MASK} now"}`],
  ])("%s is shown to whoever decides as %s", (json, masked) => {
    expect(mask.maskJsonText(json, "decider")).toBe(masked);
  });

  test.each([
    '{"max_tokens":12345678901234567890,"author":1.0,"a":[-0,1e2,1E+999,"\\u0041\\/"],"__proto__":{"key":null}}',
    '{"prompt":"Basic plan, the bearer of bad news","next_page":"/a?page=2&b=c#d","at":"12:30","to":"ann@example.com"}',
    '{"file":"task_test_results","img":"blog_post","url":"https://example.com:8080/a/@ann","mail":"mailto:ann@example.com"}',
    "null",
    "1.0",
    '"text"',
    "[]",
  ])("%s stays as it is, byte for byte", (json) => {
    expect(maskJsonText(json)).toBe(json);
  });

  test("of an answer is masked alike; bytes, into which nobody can look, show nothing", () => {
    expect(maskResponseText('{"token":"abc","n":1.0}')).toBe('{"token":"••••(token,3-chars)","n":1.0}');
    expect(maskResponseText('{"encoding":"base64","data":"AAECAwQFBgcICQ=="}')).toBe(
      '{"encoding":"base64","data":"••••"}',
    );
  });
});

test.each([
  ["password=hunter2&a=1", "password=••••(password,7-chars)&a=1"],
  ["a=1&user%5Bpassword%5D=x+y&b=", "a=1&user%5Bpassword%5D=••••(password,3-chars)&b="],
  ["client_secret=0123456789abcdef", "client_secret=••••(secret,16-chars,…cdef)"],
  ["key=1&code=2&sig=3&access=4", "key=1&code=2&sig=3&access=4"],
  ["max_tokens=5&author=ann", "max_tokens=5&author=ann"],
  [`h=Bearer+${TOKEN}&n=1`, "h=Bearer+••••(Bearer-token,16-chars,…t7Rw)&n=1"],
  [`h=Bearer%20${TOKEN}`, "h=Bearer%20••••(Bearer-token,16-chars,…t7Rw)"],
  ["json=%7B%22password%22%3A%22x%22%7D&n=1", "json=%7B%22password%22%3A%22••••(password,1-char)%22%7D&n=1"],
  ["a=1&token=&b=2", "a=1&token=&b=2"],
  ["a&b&c", "a&b&c"],
  ["https://api.example.com/orders?page=2#top", "https://api.example.com/orders?page=2#top"],
  ["https://api.example.com/?token=abc&page=2", "https://api.example.com/?token=••••(token,3-chars)&page=2"],
  ["https://api.example.com/?a=1&key=0123456789abcdef", "https://api.example.com/?a=1&key=••••(key,16-chars,…cdef)"],
  [
    "https://api.example.com/?code=1;sig=2&access=3",
    "https://api.example.com/?code=••••(code,1-char);sig=••••(signature,1-char)&access=••••(token,1-char)",
  ],
  ["https://api.example.com/cb#access_token=abc", "https://api.example.com/cb#access_token=••••(token,3-chars)"],
  ["https://ann:hunter2@api.example.com/a", "https://••••(password,7-chars)@api.example.com/a"],
  ["https://0123456789abcdef@api.example.com/", "https://••••(password,16-chars,…cdef)@api.example.com/"],
  ["https://ann:p@ss@api.example.com/", "https://••••(password,4-chars)@api.example.com/"],
  ["https://ann:p&s;s=1@api.example.com/?a=b@c", "https://••••(password,7-chars)@api.example.com/?a=b@c"],
  ["https:\\\\ann:pw@api.example.com/", "https:\\\\••••(password,2-chars)@api.example.com/"],
  ["//ann:pw@api.example.com/", "//••••(password,2-chars)@api.example.com/"],
  ["https://example.com?b@c#d@e", "https://example.com?b@c#d@e"],
  ["/login?next=%2Fa&token=abc", "/login?next=%2Fa&token=••••(token,3-chars)"],
  ["/login;token=abc", "/login;token=••••(token,3-chars)"],
  ["?to%6ben=abc", "?to%6ben=••••(token,3-chars)"],
  ["https://token.example.com/secret/pin?a=b", "https://token.example.com/secret/pin?a=b"],
  ["https://token.example.com/a=b", "https://token.example.com/a=b"],
  [`https://api.example.com/hooks/${GITHUB}/x`, `https://api.example.com/hooks/${GITHUB_MASK}/x`],
  [
    "https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/a1b2C3d4e5F6g7H8i9J0k1L2",
    "https://hooks.slack.com/services/••••(Slack-webhook,44-chars,…k1L2)",
  ],
  [
    "https://api.example.com/?r=https://b.example.com/?token=abc",
    "https://api.example.com/?r=https://b.example.com/?token=••••(token,3-chars)",
  ],
  [
    "https://api.example.com/?r=https%3A%2F%2Fb.example.com%2F%3Ftoken%3Dabc&n=1",
    "https://api.example.com/?r=https%3A%2F%2Fb.example.com%2F%3Ftoken%3D••••(token,3-chars)&n=1",
  ],
  ["https://api.example.com/?u=ann%3Apw%40db&n=1", "https://api.example.com/?u=••••(password,2-chars)%40db&n=1"],
  ["https://api.example.com/?q=100%25&p=%zz", "https://api.example.com/?q=100%25&p=%zz"],
  ["https://api.example.com/?token=a b&n=1", "https://api.example.com/?token=••••(token,3-chars)&n=1"],
  ["not a url", "not a url"],
  ["", ""],
])("the URL or form %s is shown to the public as %s", (url, masked) => {
  expect(maskUrl(url)).toBe(masked);
});

test.each([
  ["https://user:rm-rf@host/?key=production-database", "https://user:rm-rf@host/?key=production-database"],
  [`https://ann:${TOKEN}@host/`, "https://ann:••••(password,16-chars,…t7Rw)@host/"],
  [`https://host/?code=${TOKEN}&key=delete`, "https://host/?code=••••(code,16-chars,…t7Rw)&key=delete"],
  [`https://host/?q=delete%20all%20${GITHUB}`, `https://host/?q=delete%20all%20${GITHUB_MASK}`],
  ["https://host/?token=delete%20everything%20at%20once", "https://host/?token=delete%20everything%20at%20once"],
])("the URL %s is shown to whoever decides as %s", (url, masked) => {
  expect(mask.maskUrl(url, "decider")).toBe(masked);
});

const PEM =
  "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIFDN8tXa1sZk1k6IWTpSBvCvyK4lTLRQ5rYx4m5fzqW8oAoGCCqGSM49\nAwEHoUQDQgAEYk1Yx3pVnC2bS0nV4pPzv6Wk7hH1s0cJr1q2m8bY0zv7w9d3l6Qe\nT5xKc8uFj4rNn2gZsXo1VtYaL0pBqI9wMEhRdw==\n-----END EC PRIVATE KEY-----";

const JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";

/** Of each kind of structure one, and of each issuer one. */
const SECRETS: readonly (readonly [whole: string, secret: string])[] = [
  ...SECRET_FORMATS.map((format) => exampleOf(format, 7)).map(({ whole, secret }) => [whole, secret] as const),
  [`Bearer ${TOKEN}`, TOKEN],
  [`bearer ${TOKEN}`, TOKEN],
  ["Basic YW5uOmh1bnRlcjJodW50ZXIy", "YW5uOmh1bnRlcjJodW50ZXIy"],
  [JWT, JWT],
];

describe("by its format", () => {
  test.each(SECRETS)("%s is hidden from everybody, wherever it stands", (whole, secret) => {
    for (const viewer of VIEWERS) {
      const masks = masksFor(viewer);
      for (const [before, after] of [
        ["", ""],
        ["see ", " now"],
        ["a\n", "\nb"],
        ["Ключ 🗝️ ", " "],
      ] as const) {
        const masked = masks.maskText(before + whole + after);
        expect(masked).not.toContain(secret.slice(0, -4));
        expect(masked).toStartWith(before + whole.slice(0, whole.length - secret.length));
        expect(masked).toEndWith(after);
      }
      const json = masks.maskJsonText(JSON.stringify([{ note: `(${whole})` }]));
      for (const text of [
        json,
        masks.maskUrl(`https://api.example.com/${whole}/x?q=${encodeURIComponent(whole)}`),
        JSON.stringify(mask.maskHeaders({ Accept: whole, "X-Any": whole }, viewer)),
      ]) {
        expect(text).not.toContain(secret.slice(0, -4));
        expect(text).not.toContain(encodeURIComponent(secret).slice(0, -4));
      }
      expect(() => JSON.parse(json)).not.toThrow();
    }
  });

  test.each([
    "Basic plan",
    "a basic authentication scheme",
    "the bearer of this",
    "Bearer delete-all",
    "Bearer delete-customer-1234-and-5678-now",
    "eyJust a word",
    "eyJ.",
    "task_test_results, disk_live_migration",
    "blog_post_of_the_month_number_12",
    "xox-1",
    "AKIA",
    "12:30, cc ann@example.com",
    "git@example.com:ann/x",
    ..."mailto sip sips xmpp acct cid mid".split(" ").map((scheme) => `${scheme}:ann@example.com`),
    "https://example.com/@ann",
    "-----BEGIN",
    "-----BEGIN X-----\ntransfer 5000 to Bob\n-----END X-----",
    "1 + 1 = 2 @ 50% #1 & more?",
  ])("%s is none", (text) => {
    for (const viewer of VIEWERS) expect(mask.maskText(text, viewer)).toBe(text);
  });

  test("how many values were hidden is counted, each once", () => {
    const masking = new Masking("public");
    mask.maskJsonText(`{"token":"${GITHUB}","a":["${GITHUB}","••••(token,9-chars)"],"password":"x"}`, masking);
    expect(masking.hidden).toBe(3);
    const decider = new Masking("decider");
    mask.maskUrl(`https://h/?token=${GITHUB}&q=Bearer%20${TOKEN}`, decider);
    expect(decider.hidden).toBe(2);
  });
});

describe("drawn at random", () => {
  test.each([
    TOKEN,
    "9f86d081884c7d659a2feaa0c55ad015",
    "0b1e9a2c-5f2d-4d7e-9c3b-7a6f5e4d3c2b",
    "P7xKc8uFj4rNn2gZsXo1Vt==",
  ])("is %s", (text) => {
    expect(looksGenerated(text)).toBe(true);
  });

  test.each([
    "short1A2b3C",
    "production-database",
    "deleteAllCustomersAndTheirOrders",
    "transfer-5000-to-account-12345678",
    "DeleteTable_prod_2024_eu-west-1",
    "x9Kq2Lm8 Vb3Zt7Rw",
    "aaaaaaaaaaaaaaaaaaaaaaaa",
    "4111111111111111",
  ])("is not %s", (text) => {
    expect(looksGenerated(text)).toBe(false);
  });
});

const PIECES = [
  ...SECRETS.map(([whole]) => whole).slice(-24),
  PEM,
  TOKEN,
  TOKEN_MASK,
  "••••(",
  ..."Bearer|basic|eyJ|eyJ9.e|-----BEGIN A-----|-----END A-----|-----BEGIN|sk_live_|ghp_|xoxb-|AKIA|whsec_|og_".split(
    "|",
  ),
  ...'@|:|/|//|?|&|=|#|;|%|%20|%3A|%40|%25|%22|+|\\|\\"|"|{|}|[|]|,|_|-|.|•|••••|••••abcd'.split("|"),
  ...'password|token|key|api|code|user|x|é|🗝️|1.0|null|mailto:|"token":|"a":'.split("|"),
  ...": |:\n|'|`|(|)|$|token: |'key': |password = |API key: |=>|  - |name: token|value: |\n  ".split("|"),
  ...'&quot;|&amp;|&#58;|&lt;|&#128477;|? token\n: |[["token","|пароль|name*=\'\'token\n\n'.split("|"),
  "machine h login u password ",
  "curl -u ann:",
  'form-data; name="token"\n\n',
  "\n--",
  " ",
  "\n",
  "\t",
  "\u00a0",
  "\ud800",
  "a".repeat(20),
  "A1".repeat(9),
];

const patchwork = fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join(""));

const anyText = fc.oneof(patchwork, fc.string({ unit: "binary", maxLength: 40 }));

const MASKS = VIEWERS.flatMap((viewer) =>
  Object.entries(masksFor(viewer)).map(([name, one]) => [name, viewer, one] as const),
);

/** Of each type, with names and texts that are put together from secrets and their pieces. */
const anyJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    anyText,
    fc.double({ noNaN: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(anyText, tie("value"), { maxKeys: 4 }),
  ),
})).value;

describe("a text in a text", () => {
  /** JSON in a string of JSON, so many times. */
  const nested = (times: number, value: string): string =>
    times === 0 ? value : JSON.stringify({ text: nested(times - 1, value), n: 1 });

  test.each([1, 2, 3, 4])("is read where it stands %i deep, and keeps all that is no secret", (times) => {
    expect(maskJsonText(nested(times, '{"token":"abc","a":"b"}'))).toBe(
      nested(times, '{"token":"••••(token,3-chars)","a":"b"}'),
    );
  });

  test("that stands deeper is hidden whole from the public, if it may hold a secret, and from nobody who decides", () => {
    const deep = nested(6, '{"token":"abc","a":"b"}');
    expect(maskJsonText(deep)).not.toContain("abc");
    expect(maskJsonText(deep)).toStartWith('{"text":"{\\"text\\":');
    expect(maskJsonText(nested(5, "harmless"))).toBe(nested(5, "harmless"));
    expect(mask.maskJsonText(deep, "decider")).toBe(deep);
    expect(mask.maskJsonText(nested(6, GITHUB), "decider")).not.toContain(GITHUB);
  });
});

test("a login in an authority is masked whatever secret follows in it", () => {
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.";
  const rest = `db.example.com&${jwt}@root:p#s?s@tcp(db)/x?parseTime=true`;
  for (const scheme of ["redis:", "https:", ""]) {
    for (const user of ["", "ann"]) {
      const text = `${scheme}//${user}:hunter2@${rest}`;
      for (const masked of [maskText(text), maskUrl(text), maskJsonText(JSON.stringify({ [text]: text }))]) {
        expect(masked).not.toContain("hunter2");
      }
      expect(maskText(maskText(text))).toBe(maskText(text));
    }
  }
});

describe("whatever the text", () => {
  test.each(MASKS)("%s for the %s never throws, and masking twice is masking once", (_name, _viewer, maskIt) => {
    const property = fc.property(anyText, (text) => {
      const once = maskIt(text);
      expect(maskIt(once)).toBe(once);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(5_000) });
  });

  test("a quote before a mask, encoded or written as a reference, is no value the second time", () => {
    for (const quote of ["%22", "%27", "%22%22%22", "&quot;"]) {
      for (const value of ["ab", " ", "a b"]) {
        const text = `token: ${quote}${value}${quote}`;
        for (const maskIt of [mask.maskUrl, mask.maskText]) {
          const once = maskIt(text, "public");
          expect(maskIt(once, "public")).toBe(once);
        }
      }
    }
  });

  test("what is masked beside a scheme hides its credentials the first time", () => {
    const glued = "AKIAA1A1A1A1A1A1A1A1A1bearer x9Kq2Lm8Vb3Zt7Rw";
    const once = mask.maskText(glued, "public");
    expect(once).not.toContain("x9Kq2Lm8");
    expect(mask.maskText(once, "public")).toBe(once);
  });

  test("a named value that looks generated once its parts are masked is hidden whole the first time", () => {
    const value = "whsec_x9Kq2Lm8Vb3Zt7Rwcode{hooks.zapier.com/hooks/catch/oCtydZUNBrpassword";
    const once = mask.maskJsonText(JSON.stringify({ token: [value] }), "decider");
    expect(once).not.toContain("x9Kq2Lm8");
    expect(mask.maskJsonText(once, "decider")).toBe(once);
  });

  test("masked JSON is JSON, compact or spaced, and masking twice is masking once", () => {
    const property = fc.property(
      anyJson,
      fc.constantFrom(0, 2),
      fc.constantFrom(...VIEWERS),
      (value, indent, viewer) => {
        const once = mask.maskJsonText(JSON.stringify(value, null, indent), viewer);
        expect(() => JSON.parse(once)).not.toThrow();
        expect(mask.maskJsonText(once, viewer)).toBe(once);
      },
    );
    fc.assert(property, { seed: SEED, numRuns: runsOf(5_000) });
  });

  test("what stands beside a secret stays byte for byte", () => {
    const harmless = fc.constantFrom(...HARMLESS.filter((name) => name !== ""));
    const written = fc.oneof(
      fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?$/),
      fc.constantFrom("null", "[ ]", '{ "a" : 1.0 }', '"\\u0041\\/"', '"🗝️ text"', "12345678901234567890"),
    );
    const space = fc.constantFrom("", " ", "\n\t");
    const around = fc.array(fc.tuple(harmless, written, space), { minLength: 1, maxLength: 5 });
    const property = fc.property(around, fc.nat(), anyJson, (members, at, secret) => {
      const texts = members.map(([name, value, gap]) => `${JSON.stringify(name)}${gap}:${gap}${value}`);
      const place = at % (texts.length + 1);
      const whole = (member: string) => `{${texts.toSpliced(place, 0, member).join(",")}}`;
      const json = maskJsonText(whole(`"token":${JSON.stringify(secret)}`));
      const [start = "", end = ""] = whole("|").split("|");
      expect(json).toStartWith(`${start}"token":`);
      expect(json).toEndWith(end);
      // Of an object or a list its shape stays, of a boolean, null or an empty text all.
      const isHidden =
        Number.isFinite(secret) || (typeof secret === "string" && !["", "true", "false", "null"].includes(secret));
      if (isHidden) expect(json).toStartWith(`${start}"token":"••••`);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(3_000) });
  });
});

describe("a canary", () => {
  const canary = fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{6,30}[0-9]$/);
  const sensitive = fc.constantFrom(...SENSITIVE.flatMap((name) => SPELLINGS.map((spelling) => spelling(name))));

  test("under a sensitive member never survives, whatever its type and wherever it stands", () => {
    const property = fc.property(canary, sensitive, anyJson, fc.nat(3), (secret, name, beside, type) => {
      const value = [secret, [beside, secret], { a: { b: secret }, beside }, Number(secret.replace(/\D/g, "9"))][type];
      const text = JSON.stringify({ beside: [beside, { [name]: value }], next: beside });
      fc.pre(!JSON.stringify(beside).includes(secret));
      const written = type === 3 ? `:${JSON.stringify(value)}` : secret;
      expect(maskJsonText(text)).not.toContain(written);
      expect(maskJsonText(JSON.stringify({ text }))).not.toContain(written);
      expect(maskJsonText(JSON.stringify(text))).not.toContain(written);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(3_000) });
  });

  test("under a sensitive field or parameter never survives", () => {
    const property = fc.property(canary, sensitive, anyText, (secret, name, beside) => {
      fc.pre(!beside.includes(secret));
      const field = encodeURIComponent(name);
      const other = encodeURIComponent(beside.toWellFormed());
      expect(maskUrl(`a=${other}&${field}=${secret}&b=${other}`)).not.toContain(secret);
      const url = `https://api.example.com/${other}?a=${other}&${field}=${secret}&b=${other}`;
      for (const text of [maskUrl(url), maskText(`see ${url} now`), maskUrl(`/?next=${encodeURIComponent(url)}`)]) {
        expect(text).not.toContain(secret);
      }
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(3_000) });
  });
});

describe("hostile text", () => {
  const CHARS = 16_000;
  const MEGABYTE = 1_000_000;
  /** Four times what the slowest takes on a core of 2025. */
  const BOUND_MS = 200;
  const units = [
    ..."eyJ|eyJa.|eyJ |og_|sk_live_|-----BEGIN |-----BEGIN A-----|Bearer |bearer\t|basic a |a:b@|a:b@ |:@|@".split("|"),
    ...'=|a=|a= |?a=|token=|&token=|token=a |//|//a@|%|%41|%zz+@|\\|"|"\\|":|"a":|{"a":|[|{|"token":[|"pin" :1,'.split(
      "|",
    ),
    ...'ghp_|xoxb-|HC-ping.com/|hc-ping.com/%2e/|-----BEGIN X-----MII|AKIA|AIza|whsec_/|"aa=a",|"Bearer",|?token=https://a:b@c/%3Ftoken%3D1 |••••|aA_| |\n'.split(
      "|",
    ),
    ..."token: |token:a |token:\n|token: a\n|'token': |token='|(token: |{|a: b |name: token |value: |name:token,value:".split(
      "|",
    ),
    ..."curl -u a: |machine a login b password |password |form-data; name=token\n\n|form-data|(((:".split("|"),
    ..."--token '|secret 'a\n|<a key='token'>x".split("|"),
    ...".abcdef|:AA|1:AA|AQE|AQE-|digest |digest response=|Private-Lines: 1\na|5H |K|token ".split("|"),
    ..."&quot;|&amp;|&amp;amp;quot;|&#34;token&#34;:a |<&amp;>|? token\n: |? |\n:|пароль|пароль: a\n".split("|"),
    ...'["token","a"],|[["token",|[ "token" , "a |form-data; name*=a\'\'token\n\n'.split("|"),
    ..."<pin>1|<a |<a:b c=d>|<a type=password value='|<a b=\\\"c|<a value=|<token><![CDATA[|token=\"\"\"|token='''a'''|token:\n- a\n|token: !a ".split(
      "|",
    ),
  ];

  const texts: Readonly<Record<string, (chars: number) => string>> = {
    ...Object.fromEntries(
      units.map((unit) => [
        JSON.stringify(unit),
        (chars) => unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars),
      ]),
    ),
    "short names": (chars) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: chars / 11 }, (_, at) => [`aKey${at}`, 1]))),
    "lists 64 deep": (chars) => {
      const nest = `${"[".repeat(64)}"token=a"${"]".repeat(64)}`;
      return `[${Array.from({ length: chars / 138 }, () => nest).join(",")}]`;
    },
    "a column of tokens": (chars) => `a,token\n${'"x","y""z"\n'.repeat(chars / 12)}`,
    "what looks generated": (chars) => JSON.stringify({ a: Array.from({ length: chars / 21 }, () => `a:${TOKEN}@`) }),
  };
  const masks = VIEWERS.flatMap((viewer) => Object.values(masksFor(viewer)).slice(0, 3));

  test.each(Object.entries(texts))("of %s is masked in linear time, and a megabyte of it at once", (_name, textOf) => {
    const growth = growthOf((chars) => {
      const text = textOf(chars);
      return () => masks.forEach((maskIt) => maskIt(text));
    }, CHARS);
    expect(growth).toBeLessThanOrEqual(GROWTH_MAX);
    const text = textOf(MEGABYTE);
    for (const maskIt of masks) expect(quickestMs(BOUND_MS, () => maskIt(text))).toBeLessThan(BOUND_MS);
  });
});
