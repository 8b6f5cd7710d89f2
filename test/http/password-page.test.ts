import { describe, expect, test } from "bun:test";
import { hiddenIn } from "../support/forms.ts";
import { createResetLink } from "../../src/accounts/welcome-links.ts";
import { cookiesIn } from "./signed-in.ts";
import { ann, openPeopleServer, PASSWORD, type PeopleAnswer, type PeopleServer } from "./people-server.ts";
import { shared } from "../support/shared.ts";

const PATH = "/settings/password";

const NEW_PASSWORD = "a newer horse battery";

const app = await shared(openPeopleServer());

/** The fields of the page's form, filled in and sent as a browser without script would. */
async function change(server: PeopleServer, cookie: string, typed: Readonly<Record<string, string>> = {}) {
  const html = (await server.get(PATH, { cookie })).text;
  const { form_token = "" } = hiddenIn(html);
  const fields = { form_token, current_password: PASSWORD, password: NEW_PASSWORD, ...typed };
  return server.form(PATH, fields, { cookie });
}

const logIn = async (server: PeopleServer, email: string, password: string) =>
  (await server.send("/auth/login", { email, password })).status;

const problemsOf = ({ text }: PeopleAnswer) => [...text.matchAll(/id="(\w+)-problem"/g)].map(([, name]) => name);

describe("a person who changes their password", () => {
  test("is asked for the one they have, stays logged in here by a new session, and nowhere else", async () => {
    const { cookie } = await app.signedUp("a@example.com");
    const other = await app.signedUp("b@example.com");
    const elsewhere = (await app.send("/auth/login", ann({ email: "a@example.com" }))).cookie;
    expect((await app.get("/settings", { cookie })).text).toContain(`href="${PATH}"`);
    const changed = await change(app, cookie);
    const to = changed.headers.get("location") ?? "";
    expect([changed.status, to]).toEqual([303, "/settings/login"]);
    const now = cookiesIn(changed).join("; ");
    for (const load of ["once", "again"]) {
      expect((await app.get(to, { cookie: now })).text, load).toEqual(
        expect.stringContaining("Your password is changed"),
      );
    }
    expect((await app.get(to, { cookie: changed.cookie })).text).not.toContain("Your password is changed");
    expect(changed.cookie).not.toBe(cookie);
    expect(await Promise.all([changed.cookie, cookie, elsewhere, other.cookie].map(app.isIn))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(await logIn(app, "a@example.com", NEW_PASSWORD)).toBe(200);
    expect(await logIn(app, "a@example.com", PASSWORD)).toBe(401);
    expect(await logIn(app, "b@example.com", PASSWORD)).toBe(200);
  });

  test("is a line of the log that holds neither password, and so is one who lost it", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    await change(server, cookie);
    const { store, secrets, clock } = server.engine;
    const token = await createResetLink({ ...store, secrets, clock }, "ann@example.com");
    await server.form(`/welcome/${token}`, ann({ password: "the newest of all" }));
    const told = server.lines.filter((line) => JSON.stringify(line).includes("password.changed"));
    expect(told).toHaveLength(2);
    const person = (await store.people.find("ann@example.com"))?.person.id ?? "nobody";
    for (const line of told) expect(JSON.stringify(line)).toContain(person);
    for (const secret of [PASSWORD, NEW_PASSWORD, "the newest of all"]) {
      expect(JSON.stringify(server.lines)).not.toContain(secret);
    }
  });

  test("with a wrong one changes nothing, and is slowed down like a login: together with it", async () => {
    await using server = await openPeopleServer();
    const { cookie } = await server.signedUp();
    for (let at = 0; at < 4; at += 1) {
      const wrong = await change(server, cookie, { current_password: "wrong wrong" });
      expect(wrong.status).toBe(401);
      expect(wrong.text).toContain("This is not your current password. Nothing was changed.");
      expect(wrong.text).not.toContain("wrong wrong");
    }
    expect(await logIn(server, "ann@example.com", "wrong wrong")).toBe(401);
    const refused = await change(server, cookie);
    expect({ status: refused.status, after: refused.headers.get("retry-after") }).toEqual({ status: 429, after: "60" });
    expect(await logIn(server, "ann@example.com", PASSWORD)).toBe(429);
    server.engine.clock.advance(60_000);
    expect(await logIn(server, "ann@example.com", PASSWORD)).toBe(200);
    expect((await change(server, cookie)).status).toBe(303);
  });

  test("is told what is wrong with what was typed, each at its field", async () => {
    const { cookie } = await app.signedUp("c@example.com");
    for (const [typed, fields] of [
      [{ password: "short" }, ["password"]],
      [{ current_password: "", password: "x".repeat(257) }, ["current_password", "password"]],
    ] as const) {
      const answer = await change(app, cookie, typed);
      expect({ status: answer.status, fields: problemsOf(answer) }).toEqual({ status: 400, fields: [...fields] });
      expect(answer.cookie).toBe("");
    }
    expect(await logIn(app, "c@example.com", PASSWORD)).toBe(200);
  });
});

test("the password's page is for forms of our own page and session, and for nobody who is logged out", async () => {
  const { cookie } = await app.signedUp("f@example.com");
  const fields = { current_password: PASSWORD, password: NEW_PASSWORD };
  expect((await app.form(PATH, fields, { cookie })).status).toBe(403);
  const evil = await app.form(PATH, fields, { cookie, origin: "https://evil.example" });
  expect(evil.status).toBe(403);
  for (const answer of [await app.get(PATH), await app.form(PATH, fields)]) {
    expect(answer.headers.get("location")).toBe(`/login?next=${encodeURIComponent(PATH)}`);
  }
  expect(await logIn(app, "f@example.com", PASSWORD)).toBe(200);
});
