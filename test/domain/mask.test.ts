import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { maskForm, maskHeaders, maskJsonText, maskResponseText, maskText, maskUrl } from "../../src/domain/mask.ts";
import { maskSecret } from "../../src/domain/mask-secret.ts";
import { isSensitiveName, isSensitiveParameter } from "../../src/domain/mask-words.ts";
import { quickestMs } from "../support/core.ts";

const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
console.log(`mask: seed ${seed}`);

/** The words of hostile 6, each written as people write it. */
const SENSITIVE = [
  ..."password passwd pwd passphrase secret token apikey auth authorization credential credentials".split(" "),
  ..."passwords secrets cookies signature cookie session jwt otp pin cvv cvc".split(" "),
  ..."api_key access_key private_key secret_key signing_key card_number".split(" "),
];
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
  return name.replace(/_(\w)/g, (_found, letter: string) => letter.toUpperCase());
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
  ..."signing status_code zip_code api.version.key access_level_key private-number".split(" "),
  "",
  "_",
  "ключ",
  "🗝️",
];

describe("a name", () => {
  test.each(SENSITIVE)("with %s among its words has a secret for a value, however it is spelt", (word) => {
    const names = SPELLINGS.map((spelling) => spelling(word));
    expect(names.filter((name) => !isSensitiveName(name))).toEqual([]);
    expect(names.filter((name) => !isSensitiveParameter(name))).toEqual([]);
  });

  test.each(HARMLESS)("%s has none", (name) => {
    expect(isSensitiveName(name)).toBe(false);
  });

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

  test("of 300 characters is not taken apart: its value is masked", () => {
    expect(isSensitiveName("a".repeat(300))).toBe(true);
  });
});

test.each([
  ["", "••••"],
  ["a", "••••"],
  ["fifteen chars..", "••••"],
  ["sixteen chars...", "••••s..."],
  ["sixteen long and more", "••••more"],
  ["🗝️".repeat(4), "••••"],
  ["0123456789ab🗝🗝🗝🗝", "••••🗝🗝🗝🗝"],
  ["••••", "••••"],
  ["••••more", "••••more"],
  ["••••and much more", "••••more"],
])("the mask of %p is %p", (secret, mask) => {
  expect(maskSecret(secret)).toBe(mask);
});

describe("headers", () => {
  const VISIBLE =
    "accept content-type content-length user-agent idempotency-key x-request-id webhook-id webhook-timestamp retry-after";

  test("show the values of nine, however they are spelt", () => {
    const names = VISIBLE.split(" ");
    expect(names).toHaveLength(9);
    const headers = Object.fromEntries(names.flatMap((name) => [name, name.toUpperCase()]).map((name) => [name, "v"]));
    expect(maskHeaders(headers)).toEqual(headers);
  });

  test.each([
    "authorization",
    "cookie",
    "x-api-key",
    "x-plan",
    "accept-language",
    "user_agent",
    "webhook-signature",
    "referer",
  ])("hide that of %s", (name) => {
    expect(maskHeaders({ [name]: "short" })).toEqual({ [name]: "••••" });
    expect(maskHeaders({ [name]: "Bearer 0123456789abcdef" })).toEqual({ [name]: "••••cdef" });
  });

  test("hide what has a secret's shape in the others too", () => {
    expect(maskHeaders({ "User-Agent": "bot (Bearer 0123456789abcdef)" })).toEqual({
      "User-Agent": "bot (Bearer ••••def)",
    });
  });
});

describe("JSON", () => {
  test.each([
    ['{"password":"hunter2"}', '{"password":"••••"}'],
    ['{"password":"0123456789abcdef"}', '{"password":"••••cdef"}'],
    ['{"password":""}', '{"password":"••••"}'],
    ['{"pin":1234}', '{"pin":"••••"}'],
    ['{"cardNumber":4111111111111111}', '{"cardNumber":"••••1111"}'],
    ['{"otp":null,"jwt":true,"cvc":-0.5e1}', '{"otp":"••••","jwt":"••••","cvc":"••••"}'],
    ['{"session":{"id":[1,"]}"],"x":{"y":"\\"}"}},"n":1.0}', '{"session":"••••","n":1.0}'],
    ['{"credentials":[{"a":"b"},"c"],"n":2}', '{"credentials":"••••","n":2}'],
    ['[[{"a":[{"apiKey":"k"}]}]]', '[[{"a":[{"apiKey":"••••"}]}]]'],
    [
      '{ "secret" : "s" , "n" : 12345678901234567890 ,\n "token"\t:\r\n7 }',
      '{ "secret" : "••••" , "n" : 12345678901234567890 ,\n "token"\t:\r\n"••••" }',
    ],
    ['{"p\\u0061ssword":"s"}', '{"p\\u0061ssword":"••••"}'],
    ['{"secret":"a\\"b","c":"d"}', '{"secret":"••••","c":"d"}'],
    ['{"token":"\\ud83d\\udddd0123456789abc\\ud83d\\udddd"}', '{"token":"••••"}'],
    ['{"secret":1,"secret":2}', '{"secret":"••••","secret":"••••"}'],
    ['{"note":"Bearer 0123456789abcdef"}', '{"note":"Bearer ••••cdef"}'],
    ['{"note":"line\\nBearer\\u0020abcdef"}', '{"note":"line\\nBearer ••••"}'],
    ['{"ghp_0123456789abcdef":1}', '{"••••cdef":1}'],
    ['"token=abc&a=1"', '"token=••••&a=1"'],
    ['{"text":"{\\"password\\":\\"hunter2\\",\\"a\\":1.0}"}', '{"text":"{\\"password\\":\\"••••\\",\\"a\\":1.0}"}'],
    ['"{\\"a\\":1,\\"access_token\\":\\"abcd"', '"{\\"a\\":1,\\"access_token\\":\\"••••\\""'],
    ['"https://api.example.com/?token=abc&page=2"', '"https://api.example.com/?token=••••&page=2"'],
  ])("%s becomes %s", (json, masked) => {
    expect(maskJsonText(json)).toBe(masked);
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
    expect(maskResponseText('{"token":"abc","n":1.0}')).toBe('{"token":"••••","n":1.0}');
    expect(maskResponseText('{"encoding":"base64","data":"AAECAwQFBgcICQ=="}')).toBe(
      '{"encoding":"base64","data":"••••"}',
    );
  });
});

test.each([
  ["password=hunter2&a=1", "password=••••&a=1"],
  ["a=1&user%5Bpassword%5D=x+y&b=", "a=1&user%5Bpassword%5D=••••&b="],
  ["client_secret=0123456789abcdef", "client_secret=••••cdef"],
  ["key=1&code=2&sig=3&access=4", "key=1&code=2&sig=3&access=4"],
  ["max_tokens=5&author=ann", "max_tokens=5&author=ann"],
  ["h=Bearer+abcdef&n=1", "h=••••&n=1"],
  ["h=Bearer%20abcdef", "h=••••"],
  ["json=%7B%22password%22%3A%22x%22%7D&n=1", "json=••••&n=1"],
  ["a=1&token=&b=2", "a=1&token=••••&b=2"],
  ["a&b&c", "a&b&c"],
  ["", ""],
])("the form %s becomes %s", (form, masked) => {
  expect(maskForm(form)).toBe(masked);
});

test.each([
  ["https://api.example.com/orders?page=2#top", "https://api.example.com/orders?page=2#top"],
  ["https://api.example.com/?token=abc&page=2", "https://api.example.com/?token=••••&page=2"],
  ["https://api.example.com/?a=1&key=0123456789abcdef", "https://api.example.com/?a=1&key=••••cdef"],
  ["https://api.example.com/?code=1;sig=2&access=3", "https://api.example.com/?code=••••;sig=••••&access=••••"],
  ["https://api.example.com/cb#access_token=abc", "https://api.example.com/cb#access_token=••••"],
  ["https://ann:hunter2@api.example.com/a", "https://••••@api.example.com/a"],
  ["https://administrators:pw@api.example.com/", "https://••••@api.example.com/"],
  ["https://ann:0123456789abcdef@api.example.com/", "https://••••cdef@api.example.com/"],
  ["https://0123456789abcdef@api.example.com/", "https://••••cdef@api.example.com/"],
  ["https://ann:p@ss@api.example.com/", "https://••••@api.example.com/"],
  ["https://ann:p&s;s=1@api.example.com/?a=b@c", "https://••••@api.example.com/?a=b@c"],
  ["https:\\\\ann:pw@api.example.com/", "https:\\\\••••@api.example.com/"],
  ["//ann:pw@api.example.com/", "//••••@api.example.com/"],
  ["https://example.com?b@c#d@e", "https://example.com?b@c#d@e"],
  ["/login?next=%2Fa&token=abc", "/login?next=%2Fa&token=••••"],
  ["/login;token=abc?x=1", "/login;token=••••"],
  ["?to%6ben=abc", "?to%6ben=••••"],
  ["https://token.example.com/secret/pin?a=b", "https://token.example.com/secret/pin?a=b"],
  ["https://token.example.com/a=b", "https://token.example.com/a=b"],
  ["https://api.example.com/hooks/ghp_0123456789abcdef/x", "https://api.example.com/hooks/••••cdef/x"],
  [
    "https://api.example.com/?r=https://b.example.com/?token=abc",
    "https://api.example.com/?r=https://b.example.com/?token=••••",
  ],
  [
    "https://api.example.com/?r=https%3A%2F%2Fb.example.com%2F%3Ftoken%3Dabc&n=1",
    "https://api.example.com/?r=••••&n=1",
  ],
  ["https://api.example.com/?u=ann%3Apw%40db&n=1", "https://api.example.com/?u=••••&n=1"],
  ["https://api.example.com/?q=100%25&p=%zz", "https://api.example.com/?q=100%25&p=%zz"],
  ["https://api.example.com/?token=a b&n=1", "https://api.example.com/?token=••••&n=1"],
  ["not a url", "not a url"],
  ["", ""],
])("the URL %s becomes %s", (url, masked) => {
  expect(maskUrl(url)).toBe(masked);
});

const PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----";
const JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";

/** Every shape of hostile 6, and what is left of it. */
const SHAPES: readonly (readonly [string, string])[] = [
  ["Bearer abc", "Bearer ••••"],
  ["bearer 1|0123456789abcdef", "bearer ••••cdef"],
  ["BEARER\tabc-1", "BEARER\t••••"],
  ["Bearer Bearer abc", "Bearer Bearer ••••"],
  ["Bearer basic abc-1", "Bearer basic ••••"],
  ["Bearer BEARER abc-1", "Bearer BEARER ••••"],
  ["Basic YW5uOnB3", "Basic ••••"],
  ["basic YW5uOmh1bnRlcjJodW50ZXIy", "basic ••••ZXIy"],
  [JWT, "••••dXJl"],
  [`${JWT.split(".").slice(0, 2).join(".")}.`, "••••In0."],
  [PEM, "••••----"],
  [PEM.slice(0, -40), `••••${PEM.slice(-44, -40)}`],
  ["sk_live_0123456789abcdef", "••••cdef"],
  ["sk_test_abcd", "••••"],
  ["sk_live_abcd", "••••"],
  ["ghp_abcd", "••••"],
  ["whsec_a+/=", "••••"],
  [`ghp_${"a1B2".repeat(9)}`, "••••a1B2"],
  [`github_pat_${"a1B2".repeat(5)}_${"c3D4".repeat(14)}`, "••••c3D4"],
  ["xoxb-1234567890-abcdefgh", "••••efgh"],
  ["xoxp-1234", "••••"],
  ["AKIAIOSFODNN7EXAMPLE", "••••MPLE"],
  [`AIza${"a-B_".repeat(8)}abc`, "••••_abc"],
  ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "••••LaSw"],
  [`og_${"aB3".repeat(12)}`, "••••3aB3"],
  ["postgres://ann:hunter2@db.example.com/x", "postgres://••••@db.example.com/x"],
  ["redis://:hunter2@db.example.com", "redis://••••@db.example.com"],
  ["ann:hunter2@db.example.com", "••••@db.example.com"],
  ["root:p#s?s@tcp(db)/x?parseTime=true", "••••@tcp(db)/x?parseTime=true"],
];

describe("by its shape", () => {
  test.each(SHAPES)("%s becomes %s, wherever it stands", (secret, masked) => {
    for (const [before, after] of [
      ["", ""],
      ["see ", " now"],
      ["a\n", "\nb"],
      ["Ключ 🗝️ ", " "],
    ] as const) {
      expect(maskText(before + secret + after)).toStartWith(before + masked.slice(0, 4));
      // A block without its end reaches to the end of the text, so there its tail is another.
      if (secret.startsWith("-----") && !secret.endsWith("-----")) continue;
      expect(maskText(before + secret + after)).toBe(before + masked + after);
    }
    expect(JSON.parse(maskJsonText(JSON.stringify([{ note: `(${secret}` }])))[0].note).not.toContain(secret);
  });

  test.each([
    "Basic plan",
    "a basic authentication scheme",
    "the bearer of this",
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
    "1 + 1 = 2 @ 50% #1 & more?",
  ])("%s is none", (text) => {
    expect(maskText(text)).toBe(text);
  });

  test("a named value in a text is one too", () => {
    expect(maskText("see https://a.example/?code=abc next")).toBe("see https://a.example/?code=•••• next");
    expect(maskText("DB_PASSWORD=abc A=1\nTOKEN=b")).toBe("DB_PASSWORD=•••• A=1\nTOKEN=••••");
    expect(maskText('got {"token": "a b", "n": 1} from it')).toBe('got {"token": "••••", "n": 1} from it');
  });
});

const PIECES = [
  ...SHAPES.map(([secret]) => secret),
  ..."Bearer|basic|eyJ|eyJ9.e|-----BEGIN A-----|-----END A-----|-----BEGIN|sk_live_|ghp_|xoxb-|AKIA|whsec_|og_".split(
    "|",
  ),
  ...'@|:|/|//|?|&|=|#|;|%|%20|%3A|%40|%25|%22|+|\\|\\"|"|{|}|[|]|,|_|-|.|•|••••|••••abcd'.split("|"),
  ...'password|token|key|api|code|user|x|é|🗝️|1.0|null|mailto:|"token":|"a":'.split("|"),
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
const MASKS = { maskText, maskUrl, maskForm, maskJsonText, maskResponseText };

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
    expect(maskJsonText(nested(times, '{"token":"abc","a":"b"}'))).toBe(nested(times, '{"token":"••••","a":"b"}'));
  });

  test("that stands deeper is masked whole, if it may hold a secret", () => {
    const deep = nested(6, '{"token":"abc","a":"b"}');
    expect(maskJsonText(deep)).not.toContain("abc");
    expect(maskJsonText(deep)).toStartWith('{"text":"{\\"text\\":');
    expect(maskJsonText(nested(5, "harmless"))).toBe(nested(5, "harmless"));
  });

  test.each([
    ["a key within a word", "xsk_test_0123456789abcdef", "x••••cdef"],
    ["the same of others", "xghp_0123456789abcdef and xsk_live_0123456789abcdef", "x••••cdef and x••••cdef"],
    ["a shorter one, which is none", "xsk_test_0123456789abcde", "xsk_test_0123456789abcde"],
  ])("%s", (_what, text, masked) => {
    expect(maskText(text)).toBe(masked);
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
  test.each(Object.entries(MASKS))("%s never throws, and masking twice is masking once", (_name, mask) => {
    const property = fc.property(anyText, (text) => {
      const once = mask(text);
      expect(mask(once)).toBe(once);
    });
    fc.assert(property, { seed, numRuns: 5_000 });
  });

  test("masked JSON is JSON, compact or spaced, and masking twice is masking once", () => {
    const property = fc.property(anyJson, fc.constantFrom(0, 2), (value, indent) => {
      const once = maskJsonText(JSON.stringify(value, null, indent));
      expect(() => JSON.parse(once)).not.toThrow();
      expect(maskJsonText(once)).toBe(once);
    });
    fc.assert(property, { seed, numRuns: 5_000 });
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
      expect(json).toStartWith(`${start}"token":"••••`);
      expect(json).toEndWith(`"${end}`);
    });
    fc.assert(property, { seed, numRuns: 3_000 });
  });
});

describe("a canary", () => {
  const canary = fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{6,30}[0-9]$/);
  const sensitive = fc.constantFrom(...SENSITIVE.flatMap((name) => SPELLINGS.map((spelling) => spelling(name))));

  test("under a sensitive member never survives, whatever its type and wherever it stands", () => {
    const property = fc.property(canary, sensitive, anyJson, fc.nat(3), (secret, name, beside, type) => {
      const value = [secret, [beside, secret], { a: { b: secret }, beside }, { [secret]: beside }][type];
      const text = JSON.stringify({ beside: [beside, { [name]: value }], next: beside });
      fc.pre(!JSON.stringify(beside).includes(secret));
      expect(maskJsonText(text)).not.toContain(secret);
      expect(maskJsonText(JSON.stringify({ text }))).not.toContain(secret);
      expect(maskJsonText(JSON.stringify(text))).not.toContain(secret);
    });
    fc.assert(property, { seed, numRuns: 3_000 });
  });

  test("under a sensitive field or parameter never survives", () => {
    const property = fc.property(canary, sensitive, anyText, (secret, name, beside) => {
      fc.pre(!beside.includes(secret));
      const field = encodeURIComponent(name);
      const other = encodeURIComponent(beside.toWellFormed());
      expect(maskForm(`a=${other}&${field}=${secret}&b=${other}`)).not.toContain(secret);
      const url = `https://api.example.com/${other}?a=${other}&${field}=${secret}&b=${other}`;
      for (const text of [maskUrl(url), maskText(`see ${url} now`), maskUrl(`/?next=${encodeURIComponent(url)}`)]) {
        expect(text).not.toContain(secret);
      }
    });
    fc.assert(property, { seed, numRuns: 3_000 });
  });

  test("in a sensitive shape never survives", () => {
    const shaped: readonly ((secret: string) => string)[] = [
      (secret) => `Bearer ${secret}`,
      (secret) => `bearer ${secret}`,
      (secret) => `Basic ${secret}`,
      (secret) => `eyJ${secret}.eyJ${secret}.${secret}`,
      (secret) => `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`,
      ...["sk_live_", "sk_test_", "ghp_", "github_pat_", "xoxb-", "whsec_"].map(
        (start) => (secret: string) => start + secret,
      ),
      (secret) => `AKIA${secret.toUpperCase()}ABCD`,
      (secret) => `AIza${secret}abcdefgh`,
      (secret) => `og_${secret.padEnd(36, "Z9")}`,
      (secret) => `ann:${secret}@db.example.com`,
      (secret) => `https://ann:${secret}@db.example.com/`,
    ];
    const around = fc.constantFrom("", " ", "see ", "(", "\n", "🗝️ ", ", ");
    const property = fc.property(canary, fc.constantFrom(...shaped), around, around, (secret, shape, before, after) => {
      const text = `${before}${shape(secret)} ${after}`;
      for (const masked of [
        maskText(text),
        maskJsonText(JSON.stringify({ a: [text] })),
        maskUrl(`/a?b=${encodeURIComponent(text)}`),
      ]) {
        expect(masked.toUpperCase()).not.toContain(secret.toUpperCase());
      }
    });
    fc.assert(property, { seed, numRuns: 5_000 });
  });
});

describe("a megabyte of hostile text", () => {
  const MEGABYTE = 1_000_000;
  const BOUND_MS = 50;
  const units = [
    ..."eyJ|eyJa.|eyJ |og_|sk_live_|-----BEGIN |-----BEGIN A-----|Bearer |bearer\t|basic a |a:b@|a:b@ |:@|@".split("|"),
    ...'=|a=|a= |?a=|&token=|token=a |//|//a@|%|%41|%zz+@|\\|"|"\\|":|"a":|{"a":|[|{|"token":[|"pin" :1,'.split("|"),
    ...'xoxb-|AKIA|AIza|whsec_/|"aa=a",|"Bearer",|?token=https://a:b@c/%3Ftoken%3D1 |••••|aA_| |\n'.split("|"),
  ];

  test.each(units)("of %j is masked in less than 50 ms", (unit) => {
    const text = unit.repeat(Math.ceil(MEGABYTE / unit.length)).slice(0, MEGABYTE);
    for (const mask of [maskText, maskJsonText, maskUrl])
      expect(quickestMs(BOUND_MS, () => mask(text))).toBeLessThan(BOUND_MS);
  });

  test("of 90,000 names is masked in less than 50 ms, and of lists 64 deep", () => {
    const names = JSON.stringify(Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`aKey${at}`, 1])));
    expect(quickestMs(BOUND_MS, () => maskJsonText(names))).toBeLessThan(BOUND_MS);
    const nest = `${"[".repeat(64)}"token=a"${"]".repeat(64)}`;
    const nests = `[${Array.from({ length: 7_000 }, () => nest).join(",")}]`;
    expect(quickestMs(BOUND_MS, () => maskJsonText(nests))).toBeLessThan(BOUND_MS);
  });
});
