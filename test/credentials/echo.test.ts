import { describe, expect, test } from "bun:test";
import { Echo, ECHO_MASK } from "../../src/credentials/echo.ts";
import { longestTurnMs, quickestOf, turnsDuring } from "../support/core.ts";
import { GROWTH_MAX, growthOf } from "../support/growth.ts";

const SECRET = "sk_live_Zx81+/Qw~9?&vT";

const json = (text: string) => JSON.stringify(text).slice(1, -1);

const percent = (text: string, digits: (hex: string) => string = (hex) => hex) =>
  Array.from(Buffer.from(text), (byte) => `%${digits(byte.toString(16).padStart(2, "0"))}`).join("");

const unicode = (text: string) =>
  Array.from(text, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

const base64 = (text: string) => Buffer.from(text).toString("base64");

const hexOf = (letter: string) => letter.charCodeAt(0).toString(16).padStart(2, "0");

/** As PHP's htmlentities has them for HTML5. */
const NAMES: Readonly<Record<string, string>> = {
  _: "&lowbar;",
  "+": "&plus;",
  "/": "&sol;",
  "?": "&quest;",
  "&": "&amp;",
};

const FORMS: readonly (readonly [string, (secret: string) => string])[] = [
  ["as it is", (secret) => secret],
  ["in capitals", (secret) => secret.toUpperCase()],
  ["in base64", base64],
  ["in base64 behind one byte", (secret) => base64(`x${secret}yz`)],
  ["in base64 behind two bytes", (secret) => base64(`xy${secret}z`)],
  ["in URL-safe base64", (secret) => Buffer.from(`a${secret}`).toString("base64url")],
  ["in base64 with lines", (secret) => base64(`ann:${secret}:and more`).replaceAll(/.{16}/g, "$&\r\n")],
  ["in hex", (secret) => Buffer.from(secret).toString("hex")],
  ["in hex of capitals", (secret) => Buffer.from(secret).toString("hex").toUpperCase()],
  ["percent-encoded", encodeURIComponent],
  ["percent-encoded whole", (secret) => percent(secret)],
  ["percent-encoded in capitals", (secret) => percent(secret, (hex) => hex.toUpperCase())],
  ["percent-encoded twice", (secret) => encodeURIComponent(percent(secret))],
  ["escaped as JSON", unicode],
  ["escaped as JSON in capitals", (secret) => unicode(secret).replaceAll(/[a-f]/g, (digit) => digit.toUpperCase())],
  ["escaped slashes", (secret) => json(secret).replaceAll("/", String.raw`\/`)],
  ["JSON in JSON", (secret) => json(json(secret).replaceAll("/", String.raw`\/`))],
  ["base64 in JSON", (secret) => json(base64(secret)).replaceAll("/", String.raw`\/`)],
  ["as HTML", (secret) => secret.replaceAll("&", "&amp;")],
  ["as a string of a program", (secret) => Array.from(secret, (letter) => `\\x${hexOf(letter)}`).join("")],
  [
    "in octal",
    (secret) => Array.from(secret, (letter) => `\\${letter.charCodeAt(0).toString(8).padStart(3, "0")}`).join(""),
  ],
  ["in short octal", (secret) => Array.from(secret, (letter) => `\\${letter.charCodeAt(0).toString(8)}`).join("")],
  ["as long code points", (secret) => Array.from(secret, (letter) => `\\U000000${hexOf(letter)}`).join("")],
  ["as code points", (secret) => Array.from(secret, (letter) => `\\u{${hexOf(letter)}}`).join("")],
  ["as Markdown", (secret) => secret.replaceAll(/[_+~?&/]/g, String.raw`\$&`)],
  ["as a list of bytes", (secret) => [...Buffer.from(secret)].join(",")],
  ["as a list of bytes on lines", (secret) => [...Buffer.from(secret)].join(",\n      ")],
  ["in hex with colons", (secret) => Array.from(secret, hexOf).join(":")],
  ["in hex of a program", (secret) => Array.from(secret, (letter) => `0x${hexOf(letter)}`).join(", ")],
  ["in base64 of base64", (secret) => base64(base64(secret))],
  ...["ab", "abc"].map(
    (word) =>
      [
        `in base64 of base64 behind ${word}`,
        (secret: string) => word + base64(`x${base64(`user:${secret}`)}`),
      ] as const,
  ),
  ["in base64 of URL-safe base64", (secret) => base64(Buffer.from(`x${secret}`).toString("base64url"))],
  ["in base64 of hex", (secret) => base64(Buffer.from(secret).toString("hex"))],
  ["in base64 of JSON", (secret) => base64(JSON.stringify({ token: unicode(secret) }))],
  ["in quoted-printable", (secret) => Array.from(secret, (letter) => `=${hexOf(letter).toUpperCase()}`).join("")],
  ["in quoted-printable lines", (secret) => secret.replaceAll(/.{7}/g, "$&=\r\n")],
  ["as names of HTML", (secret) => secret.replaceAll(/[_+/~?&]/g, (sign) => NAMES[sign] ?? sign)],
  ["as padded numbers of HTML", (secret) => Array.from(secret, (letter) => `&#x000000${hexOf(letter)};`).join("")],
  ["as numbers of HTML", (secret) => Array.from(secret, (letter) => `&#${letter.charCodeAt(0)};`).join("")],
];

const SPELLED: Readonly<Record<string, string>> = { " ": "+", "'": "''", '"': '""' };

/** Every form in which the text can be read. */
function readable(text: string): string {
  const letter = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  const unescaped = (one: string) =>
    one.replaceAll(/%([0-9a-f]{2})/gi, letter).replaceAll(/\\u([0-9a-f]{4})/gi, letter);
  return [text, unescaped(text), unescaped(unescaped(text))].join("\n");
}

describe("an answer that has the secret", () => {
  test.each(FORMS)("%s shows nothing of it", (_what, form) => {
    const echo = new Echo([SECRET]);
    const shown = echo.mask(`{"before": 1, "echo": "${form(SECRET)}", "after": 2}`);
    expect(shown).toStartWith('{"before": 1, "echo": "');
    expect(shown).toEndWith('", "after": 2}');
    expect(shown).toContain(ECHO_MASK);
    expect(echo.count).toBeGreaterThan(0);
    expect(readable(shown)).not.toContain(SECRET.slice(4, 10));
    // Nothing is left but what stood around it, and of base64 the neighbours.
    expect(shown.length).toBeLessThan('{"before": 1, "echo": "", "after": 2}'.length + 32);
  });

  test.each(FORMS)("%s and is cut at any place shows no beginning of it", (_what, form) => {
    const whole = `${"-".repeat(9)}${form(SECRET)}`;
    for (let length = 10; length < whole.length; length += 1) {
      const shown = new Echo([SECRET]).mask(whole.slice(0, length), true).slice(9);
      // What stands around the secret in a base64 text is not of it.
      expect(shown.split(ECHO_MASK)[0]?.length).toBeLessThanOrEqual(8);
      expect(shown.length).toBeLessThanOrEqual(24);
      expect(readable(shown)).not.toContain(SECRET.slice(0, 3));
    }
  });

  // An agent that may store what it reads back would learn the secret letter by letter.
  test.each(FORMS)("%s and is cut tells nobody whether a guess of its beginning is right", (_what, form) => {
    const other = Array.from(SECRET).toReversed().join("");
    const whole = `${"-".repeat(299)}${form(SECRET)}`;
    for (let length = 300; length < whole.length; length += 1) {
      const guess = whole.slice(0, length);
      expect(new Echo([SECRET]).mask(guess, true)).toBe(new Echo([other]).mask(guess, true));
    }
  });

  test("is found behind a reference that only looks like one, whatever its name", () => {
    const written = SECRET.replaceAll(/[_+/?&]/g, (sign) => NAMES[sign] ?? sign);
    for (const name of ["constructor", "nosuchsign", "#9999999"]) {
      expect(new Echo([SECRET]).mask(`&${name}; ${written} &${name};`)).toBe(`&${name}; ${ECHO_MASK} &${name};`);
    }
  });

  test("is found again and again, and counted", () => {
    const echo = new Echo([SECRET]);
    expect(echo.mask(`${SECRET} and ${SECRET}`)).toBe(`${ECHO_MASK} and ${ECHO_MASK}`);
    expect(echo.count).toBe(2);
    expect(echo.mask("nothing here %41 \\u0041 &amp;")).toBe("nothing here %41 \\u0041 &amp;");
    expect(echo.count).toBe(2);
    expect(new Echo(["abcabcab"]).mask("abcabcabcab")).toBe(ECHO_MASK);
  });

  test("shows no beginning of it where much is masked before the cut, or only space stands behind it", async () => {
    expect(await new Echo([SECRET]).maskStart(SECRET.repeat(9), 50)).toBe(ECHO_MASK);
    const spaced = `${"-".repeat(99)}${SECRET.slice(0, 9)}\n${" ".repeat(99)}`;
    expect(new Echo([SECRET]).mask(spaced, true)).not.toContain(SECRET.slice(0, 3));
  });

  test("shows no bits of its end in a short word of base64", () => {
    expect(new Echo(["Kd83-Rm2"]).mask(base64("Kd83-Rm2"))).toBe(`${ECHO_MASK}=`);
  });

  test("shows no pair of a user and a password", () => {
    const pair = `Basic ${base64("ann:Kd83-Rm20-secret")}`;
    const echo = new Echo(["Kd83-Rm20-secret", pair]);
    expect(echo.mask(`you sent ${pair}.`)).toBe(`you sent ${ECHO_MASK}.`);
  });

  test("with spaces or quotes is masked as forms, SQL and CSV write it", () => {
    const secret = `it's "my" pass word`;
    for (const written of [/ /g, /'/g, /"/g].map((sign) => secret.replaceAll(sign, (found) => SPELLED[found] ?? "")))
      expect(new Echo([secret]).mask(written)).toBe(ECHO_MASK);
  });

  test("in another alphabet is masked by its bytes", () => {
    const echo = new Echo(["пароль-ключ"]);
    for (const form of [encodeURIComponent, base64, unicode])
      expect(echo.mask(form("пароль-ключ"))).toStartWith(ECHO_MASK);
  });
});

describe("a body", () => {
  const masked = (bytes: Uint8Array, headers: Record<string, string> = {}, isCut = false, status = 200) =>
    new Echo([SECRET]).maskBody(bytes, isCut, { status, headers: new Headers(headers) });

  test("that no search can read is withheld", async () => {
    const text = Buffer.from(`{"a":"${SECRET}"}`);
    expect(await masked(Bun.gzipSync(text), { "content-encoding": "gzip" })).toBeNull();
    expect(await masked(text, { "content-encoding": "x-own" })).toBeNull();
    expect(await masked(Bun.gzipSync(text))).toBeNull();
    expect(await masked(Buffer.from(SECRET, "utf16le"))).toBeNull();
    expect(await masked(Buffer.from("clé", "latin1"))).toBeNull();
    expect(await masked(text, { "content-type": "text/plain; charset=utf-7" })).toBeNull();
    expect(await masked(text, { "content-type": 'text/plain; charset="IBM037"' })).toBeNull();
    const part = text.subarray(9, 17);
    expect(await masked(part, { "content-range": "bytes 9-16/31" })).toBeNull();
    expect(await masked(part, {}, false, 206)).toBeNull();
    expect(await masked(part, { "content-type": "multipart/byteranges; boundary=x" })).toBeNull();
  });

  test("that is text is searched, also where it is cut", async () => {
    const text = Buffer.from(`{"a":"${SECRET}"}`);
    expect(await masked(text, { "content-type": "application/json; charset=UTF-8" })).toBe(`{"a":"${ECHO_MASK}"}`);
    const cut = Buffer.concat([Buffer.alloc(200, "-"), text.subarray(0, 14)]);
    expect(await masked(cut, { "content-encoding": "identity" }, true)).toMatch(new RegExp(`^-{100,}${ECHO_MASK}$`));
    expect(await masked(Buffer.from(`${"-".repeat(200)}é`).subarray(0, 201), {}, true)).toEndWith(`-${ECHO_MASK}`);
  });

  test("that takes long leaves others their turn, as each of several does", async () => {
    const text = Buffer.from(`${SECRET}${"%41".repeat(80_000)}`);
    const turns = await turnsDuring(async () => {
      const shown = await Promise.all([masked(text), masked(text), masked(Buffer.from("%41"))]);
      expect(shown.map((one) => one?.slice(0, 7))).toEqual([`${ECHO_MASK}%41`, `${ECHO_MASK}%41`, "%41"]);
    });
    expect(turns).toBeGreaterThan(20);
  });

  test("that takes long waits for one of each other account, and of each other key of its own", async () => {
    const ends: string[] = [];
    const search = async (accountId: string, keyId: string) => {
      const echo = new Echo([SECRET], [], { accountId, keyId });
      await echo.maskBody(Buffer.from("%41".repeat(9_000)), false, { status: 200, headers: new Headers() });
      ends.push(`${accountId} ${keyId}`);
    };
    await Promise.all(
      [
        ["a", "1"],
        ["a", "1"],
        ["a", "1"],
        ["a", "2"],
        ["b", "3"],
      ].map(([a = "", key = ""]) => search(a, key)),
    );
    expect(ends).toEqual(["a 1", "b 3", "a 2", "a 1", "a 1"]);
  });

  test("is withheld if its turn or the end of the search doesn't come in time, and a header is masked", async () => {
    const text = "%41".repeat(9_000);
    const search = (msMax: number) =>
      new Echo([SECRET], [], { accountId: "a", keyId: "1" }, msMax).maskBody(Buffer.from(text), false, {
        status: 200,
        headers: new Headers(),
      });
    expect(await Promise.all([search(10_000), search(1)])).toEqual([text, null]);
    expect(await search(0)).toBeNull();
    expect(await new Echo([SECRET], [], undefined, 0).maskStart(text, 20_000)).toBe(ECHO_MASK);
    expect(await search(10_000)).toBe(text);
  });

  test("that is full of it, in a text that has every form, holds the event loop for a moment only", async () => {
    const forms = String.raw`%252525 \u005cx &#x26;amp; =3D41 65,66,67 41 42 43 QUJDREVGR0hJSktMTU5P`;
    const text = Buffer.from(`${forms}\nAA\nBB ${"s3cr3t-K!".repeat(10_000)}`);
    const search = async () => {
      const shown = await new Echo(["s3cr3t-K"]).maskBody(text, false, { status: 200, headers: new Headers() });
      expect(shown).toContain(`${ECHO_MASK}!${ECHO_MASK}!`);
    };
    // In one piece it takes most of a second.
    expect(await quickestOf(300, () => longestTurnMs(search))).toBeLessThan(300);
  });
});

test.each(["%41", "\\u0041", "%2541\n", SECRET.slice(0, 7), "aaaa\n", "65, ", "=41"])(
  "four times the answer takes at most nine times as long, also full of %j",
  (part) => {
    const workOn = (chars: number) => {
      const text = part.repeat(chars / part.length);
      return () => new Echo([SECRET]).mask(text, true);
    };
    expect(growthOf(workOn, 30_000)).toBeLessThanOrEqual(GROWTH_MAX);
  },
);
