import { describe, expect, test } from "bun:test";
import { NEXT_CHARS_MAX } from "../../src/core/limits.ts";
import { safeNext } from "../../src/http/session.ts";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { cookiesIn } from "./signed-in.ts";
import { ann, openPeopleServer, PASSWORD, type PeopleAnswer } from "./people-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openPeopleServer());

/** The texts that stand with a field as its problem. */
const problemOf = ({ text }: PeopleAnswer, field: string) =>
  new RegExp(`id="${field}-problem"[^>]*>([^<]*)<`).exec(text)?.[1] ?? null;

const shownEmail = ({ text }: PeopleAnswer) => /name="email"[^>]* value="([^"]*)"/.exec(text)?.[1];

const goesTo = ({ headers }: PeopleAnswer) => headers.get("location");

describe("a form of our own pages", () => {
  test("leaves its address one that can be loaded again after it was refused", async () => {
    for (const [path, page] of [
      ["/auth/login", "/login"],
      ["/auth/signup", "/signup"],
    ] as const) {
      expect((await app.form(path, { email: "nobody@example.com", password: "wrong" })).status).toBeOneOf([400, 401]);
      const again = await app.get(path);
      expect([again.status, goesTo(again)]).toEqual([303, page]);
      expect(goesTo(await app.get(`${path}?next=/actions`))).toBe(`${page}?next=%2Factions`);
      expect(goesTo(await app.get(`${path}?next=//evil.example`))).toBe(page);
    }
  });

  test("signs up: the page shows the key once, and its person is logged in", async () => {
    const answer = await app.form("/auth/signup", ann({ email: "form@example.com", next: "/approvals?status=x" }));
    expect(answer.status).toBe(200);
    const key = /og_[0-9A-Za-z]{36}/.exec(answer.text)?.[0] ?? "";
    expect(isWellFormedApiKey(key)).toBe(true);
    expect(JSON.stringify([...answer.headers])).not.toContain(key.slice(3));
    expect(answer.text).toContain('href="/approvals?status=x"');
    expect(answer.text).toContain("form@example.com");
    expect(goesTo(await app.get("/signup/done", { cookie: cookiesIn(answer).join("; ") }))).toBe("/approvals");
    expect(await app.isIn(answer.cookie)).toBe(true);
    // Sent again it signs nobody up again.
    expect((await app.form("/auth/signup", ann({ email: "form@example.com" }))).status).toBe(409);
    const me = await app.get("/v1/account", { authorization: `Bearer ${key}` });
    expect(JSON.parse(me.text)).toMatchObject({ email: "form@example.com", key: { role: "owner" } });
  });

  test("signs up with https: a page that can be loaded again shows the key", async () => {
    await using own = await openPeopleServer({ baseUrl: "https://outgate.example" });
    const answer = await own.form("/auth/signup", ann());
    expect([answer.status, goesTo(answer)]).toEqual([303, "/signup/done"]);
    const cookie = cookiesIn(answer).join("; ");
    const shown = await own.get("/signup/done", { cookie });
    expect(shown.text).toMatch(/og_[0-9A-Za-z]{36}/);
    // Loaded again it signs nobody up again; later, and for others, it shows nothing.
    expect((await own.get("/signup/done", { cookie })).text).toBe(shown.text);
    expect(goesTo(await own.get("/signup/done", { cookie: answer.cookie }))).toBe("/approvals");
  });

  test("logs in, and leads to where its person wanted to go", async () => {
    await app.signedUp("bob@example.com");
    const bob = ann({ email: "BOB@example.com" });
    const home = await app.form("/auth/login", bob);
    expect({ status: home.status, to: goesTo(home) }).toEqual({ status: 303, to: "/approvals" });
    expect(await app.isIn(home.cookie)).toBe(true);
    expect(goesTo(await app.form("/auth/login", { ...bob, next: "/approvals?x=1&y=%2F" }))).toBe(
      "/approvals?x=1&y=%2F",
    );
    expect(goesTo(await app.form("/auth/login", { ...bob, next: "//evil.example" }))).toBe("/approvals");
  });
});

describe("a form that is not taken is shown again", () => {
  test.each([
    ["an address that is none", { email: "ann", password: PASSWORD }, "email"],
    ["no address", { password: PASSWORD }, "email"],
    ["a short password", { email: "ann@example.com", password: "short" }, "password"],
    ["no password", { email: "ann@example.com" }, "password"],
  ])("with what is wrong beside the field: %s", async (_what, fields, field) => {
    for (const path of ["/auth/signup", "/auth/login"]) {
      const answer = await app.form(path, { ...fields, next: "/approvals?a=b" });
      expect(answer.status).toBe(400);
      expect(problemOf(answer, field)).toMatch(/^(Enter|Use) /);
      expect(problemOf(answer, field === "email" ? "password" : "email")).toBeNull();
      expect(shownEmail(answer)).toBe("email" in fields ? fields.email : "");
      // Where the person wanted to go, and nothing of the password.
      expect(answer.text).toContain('name="next" value="/approvals?a=b"');
      for (const password of [PASSWORD, "short"]) expect(answer.text).not.toContain(password);
      expect(answer.cookie).toBe("");
    }
  });

  test("with a taken address: 409, beside it", async () => {
    await app.signedUp("taken@example.com");
    const answer = await app.form("/auth/signup", ann({ email: "Taken@example.com" }));
    expect(answer.status).toBe(409);
    expect(problemOf(answer, "email")).toContain("An account with this email address already exists.");
    expect(shownEmail(answer)).toBe("Taken@example.com");
  });

  test("without a word of it becoming part of the page", async () => {
    const email = `"><script>alert(1)</script>`;
    const answer = await app.form("/auth/login", { email, password: `"><b>`, next: `/"><i>` });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toMatch(/<script(?! type="module" src="\/assets\/session-)|<b>|<i>/);
    expect(shownEmail(answer)).toBe("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
  });
});

describe("the pages", () => {
  test.each([
    ["/login", "current-password"],
    ["/signup", "new-password"],
  ])("%s tell a password manager what they ask for", async (path, kind) => {
    const { text } = await app.get(path);
    expect(text).toContain('autocomplete="username"');
    expect(text).toContain(`autocomplete="${kind}"`);
  });

  test("lead on whoever is logged in", async () => {
    const { cookie } = await app.signedUp("in@example.com");
    for (const path of ["/login", "/signup"]) {
      expect(goesTo(await app.get(path, { cookie }))).toBe("/approvals");
      expect(goesTo(await app.get(`${path}?next=/keys`, { cookie }))).toBe("/keys");
      expect(goesTo(await app.get(`${path}?next=https://evil.example`, { cookie }))).toBe("/approvals");
    }
  });

  test("carry where a person wants to go from one to the other", async () => {
    const { text } = await app.get("/login?next=/approvals%3Fa=1");
    expect(text).toContain('name="next" value="/approvals?a=1"');
    expect(text).toContain('href="/signup?next=%2Fapprovals%3Fa%3D1"');
    expect((await app.get("/login?next=//evil.example")).text).not.toContain("evil");
  });
});

describe("next", () => {
  test.each(["/", "/approvals", "/approvals?status=x&host=a%20b", "/r/abc#part", "/a/../b", "/@evil.example"])(
    "is a path of ours: %s",
    (path) => {
      expect(safeNext(path)).toBe(path);
      // As a browser reads it, from any page of ours.
      expect(new URL(path, "http://127.0.0.1:3000/auth/login").origin).toBe("http://127.0.0.1:3000");
    },
  );

  test.each([
    "",
    "approvals",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "/a\\b",
    "https://evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/a\r\nSet-Cookie: x=1",
    "/\u2028",
    "/ü",
    `/${"a".repeat(NEXT_CHARS_MAX)}`,
  ])("is nothing else: %j", (text) => {
    expect(safeNext(text)).toBeNull();
  });
});
