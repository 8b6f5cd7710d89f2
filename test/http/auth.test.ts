import { beforeEach, describe, expect, test } from "bun:test";
import { compile } from "../../src/api/check.ts";
import { LoggedInJson, SignedUpJson } from "../../src/accounts/people.ts";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { ann, codeOf, fieldsOf, openPeopleServer, PASSWORD, type PeopleServer } from "./people-server.ts";
import { OWN_ORIGIN } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const signedUp = compile(SignedUpJson);

const loggedIn = compile(LoggedInJson);

const withOrigin = { origin: OWN_ORIGIN };

const app = await shared(openPeopleServer());

// One client may sign up twenty times a minute.
beforeEach(() => app.engine.clock.advance(60_000));

/** People who came in, accounts and keys: what a refusal must not add to. */
async function rows(server: PeopleServer) {
  const { Database } = await import("bun:sqlite");
  using db = new Database(`${server.engine.folder}/outgate.db`, { readonly: true });
  const count = (table: string) => db.query(`select count(*) as n from ${table}`).values()[0]?.[0];
  return ["people", "accounts", "members", "api_keys", "sessions"].map((table) => [table, count(table)]);
}

describe("a sign-up", () => {
  test("makes an account with an owner key that works, and logs its person in", async () => {
    const answer = await app.send("/auth/signup", ann({ email: "Zoe.O'Hara+1@Example.com" }));
    expect(answer.status).toBe(201);
    const shown: unknown = JSON.parse(answer.text);
    if (!signedUp.accepts(shown)) throw new Error(JSON.stringify(signedUp.issues(shown)));
    expect(Object.keys(shown)).toEqual(["account", "api_key"]);
    expect(shown.account).toEqual({ id: expect.stringMatching(/^acc_/), email: "Zoe.O'Hara+1@Example.com" });
    expect(isWellFormedApiKey(shown.api_key)).toBe(true);
    expect(await app.isIn(answer.cookie)).toBe(true);
    const me = await app.get("/v1/account", { authorization: `Bearer ${shown.api_key}` });
    expect(JSON.parse(me.text)).toMatchObject({
      id: shown.account.id,
      email: "Zoe.O'Hara+1@Example.com",
      key: { name: "owner", role: "owner" },
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test("shows key, password and session nowhere but in its answer", async () => {
    const { key, cookie } = await app.signedUp("quiet@example.com");
    const lines = JSON.stringify([app.lines, app.engine.lines]);
    for (const secret of [key, cookie.split("=")[1] ?? "", PASSWORD]) expect(lines).not.toContain(secret);
    expect(lines).not.toContain("quiet@example.com");
    expect(app.lines.at(-1)?.fields).toMatchObject({
      route: "/auth/signup",
      account_id: expect.stringMatching(/^acc_/),
      person_id: expect.stringMatching(/^per_/),
    });
  });

  test.each(["taken@example.com", "HAD@EXAMPLE.COM", "Gone@Example.com"])(
    "with an address that somebody has is email_taken: %s",
    async (email) => {
      await app.signedUp(email.toLowerCase());
      const before = await rows(app);
      const answer = await app.send("/auth/signup", ann({ email }));
      expect([answer.status, codeOf(answer), answer.cookie]).toEqual([409, "email_taken", ""]);
      expect(await rows(app)).toEqual(before);
    },
  );

  test("while SIGNUPS=closed is 403, whatever is in it, and makes nothing", async () => {
    await using closed = await openPeopleServer({ signUps: { closedBy: "SIGNUPS" } });
    const before = await rows(closed);
    const answers = [
      await closed.send("/auth/signup", ann()),
      await closed.send("/auth/signup?x=1", "not even an object"),
      await closed.ask("POST", "/auth/signup", { body: "{", headers: { "content-type": "text/plain" } }),
    ];
    expect(answers.map((answer) => [answer.status, codeOf(answer)])).toEqual(answers.map(() => [403, "forbidden"]));
    expect((await closed.form("/auth/signup", ann())).status).toBe(403);
    expect((await closed.get("/signup")).status).toBe(403);
    expect((await closed.get("/login")).text).not.toContain("/signup");
    expect(await rows(closed)).toEqual(before);
  });
});

describe("a login", () => {
  test("is 200 with the account, in any case of the address, and a session", async () => {
    const { accountId } = await app.signedUp("Bob@example.com");
    for (const email of ["Bob@example.com", "BOB@EXAMPLE.COM"]) {
      const answer = await app.send("/auth/login", ann({ email }));
      expect(answer.status).toBe(200);
      const shown: unknown = JSON.parse(answer.text);
      expect(loggedIn.issues(shown)).toEqual([]);
      expect(shown).toEqual({ account: { id: accountId, email: "Bob@example.com" } });
      expect(await app.isIn(answer.cookie)).toBe(true);
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
  });

  test("with a wrong password and with an unknown address is answered in the same bytes", async () => {
    await app.signedUp("carl@example.com");
    const wrong = await app.send("/auth/login", { email: "carl@example.com", password: "wrong wrong" });
    const unknown = await app.send("/auth/login", { email: "nobody@example.com", password: "wrong wrong" });
    for (const answer of [wrong, unknown]) {
      expect({ status: answer.status, code: codeOf(answer) }).toEqual({ status: 401, code: "invalid_credentials" });
      expect(answer.cookie).toBe("");
    }
    const bytes = ({ text }: { text: string }) => text.replaceAll(/req_\w+/g, "");
    expect(bytes(wrong)).toBe(bytes(unknown));
    const heads = [wrong, unknown].map(({ headers }) => [...headers.keys()].toSorted((a, b) => (a < b ? -1 : 1)));
    expect(heads[0]).toEqual(heads[1] ?? []);
  });
});

describe("address and password", () => {
  const bad = [
    ["no password", { email: "a@example.com" }, ["password"]],
    ["B94 seven characters", ann({ password: "1234567" }), ["password"]],
    ["B94 257 characters", ann({ password: "a".repeat(257) }), ["password"]],
    ["B94 an empty one", ann({ password: "" }), ["password"]],
    ["B94 seven emoji, of two units each", ann({ password: "\u{1f600}".repeat(7) }), ["password"]],
    ["a number as password", ann({ password: 12_345_678 }), ["password"]],
    ["half a character", ann({ password: "1234567\ud800" }), ["password"]],
    ["NUL", ann({ password: "12345678\0" }), ["password"]],
    ["no address", { password: PASSWORD }, ["email"]],
    ["an address that is none", ann({ email: "ann" }), ["email"]],
    ["both null", { email: null, password: null }, ["email", "password"]],
    ["an unknown member", ann({ role: "owner" }), ["role"]],
    ["everything at once", { email: 1, password: [], next: "/" }, ["email", "next", "password"]],
  ] as const;

  test.each(
    bad.flatMap(([what, body, fields]) => ["signup", "login"].map((verb) => [verb, what, body, fields] as const)),
  )("at /auth/%s: %s is a validation_error that names it, and nothing is made", async (verb, _what, body, fields) => {
    const before = await rows(app);
    const answer = await app.send(`/auth/${verb}`, body);
    expect([answer.status, codeOf(answer), fieldsOf(answer)]).toEqual([400, "validation_error", [...fields]]);
    expect(answer.text).not.toContain(PASSWORD);
    expect(await rows(app)).toEqual(before);
  });

  test.each([
    ["eight characters", "12345678"],
    ["256 characters", "a".repeat(256)],
    ["256 emoji", "\u{1f600}".repeat(256)],
    ["blanks only", "        "],
    ["what a form and JSON would quote", `"'&=%+<\\ü\n☃`],
  ])("a password of %s signs up and logs in", async (what, password) => {
    const email = `${what.replaceAll(" ", ".")}@example.com`;
    expect((await app.send("/auth/signup", { email, password })).status).toBe(201);
    expect((await app.send("/auth/login", { email, password })).status).toBe(200);
    expect((await app.send("/auth/login", { email, password: "of somebody else" })).status).toBe(401);
  });
});

describe("a logout", () => {
  test("is 204, ends the session, and takes the cookie back", async () => {
    const { cookie, key } = await app.signedUp("fritz@example.com");
    const other = (await app.send("/auth/login", ann({ email: "fritz@example.com" }))).cookie;
    const answer = await app.ask("POST", "/auth/logout", { headers: { cookie, ...withOrigin } });
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: "" });
    expect(answer.headers.get("set-cookie")).toBe("outgate_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    expect(await app.isIn(cookie)).toBe(false);
    // Elsewhere the person stays logged in.
    expect(await app.isIn(other)).toBe(true);
    const log = await app.get("/v1/audit?kind=signed_out", { authorization: `Bearer ${key}` });
    expect(log.text).toContain('"actor":"user:fritz@example.com"');
  });

  test.each([
    ["nobody", {}],
    ["a session that has ended", { cookie: `outgate_session=${"0".repeat(64)}` }],
    ["a cookie that is none of ours", { cookie: "outgate_session='; drop table people; --" }],
  ])("of %s is 204 too", async (_who, headers) => {
    const answer = await app.ask("POST", "/auth/logout", { headers: { ...headers, ...withOrigin } });
    expect(answer.status).toBe(204);
  });
});
