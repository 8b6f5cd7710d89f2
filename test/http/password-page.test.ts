import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOfferPassword } from "../../src/accounts/welcome-link.ts";
import { cookiesIn } from "./signed-in.ts";
import { ann, openPeopleDoor, PASSWORD, type PeopleAnswer, type PeopleDoor } from "./people-house.ts";

const PATH = "/settings/password";
const NEW_PASSWORD = "a newer horse battery";

let door: PeopleDoor;
beforeAll(async () => {
  door = await openPeopleDoor();
});
afterAll(() => door[Symbol.asyncDispose]());

/** The fields of the page's form, filled in and sent as a browser without script would. */
async function change(house: PeopleDoor, cookie: string, typed: Readonly<Record<string, string>> = {}) {
  const html = (await house.get(PATH, { cookie })).text;
  const form_token = /name="form_token" value="([^"]+)"/.exec(html)?.[1] ?? "";
  const fields = { form_token, current_password: PASSWORD, password: NEW_PASSWORD, ...typed };
  return house.form(PATH, fields, { cookie });
}
const logIn = async (house: PeopleDoor, email: string, password: string) =>
  (await house.send("/auth/login", { email, password })).status;
const problemsOf = ({ text }: PeopleAnswer) => [...text.matchAll(/id="(\w+)-problem"/g)].map(([, name]) => name);

describe("a person who changes their password", () => {
  test("is asked for the one they have, stays logged in here by a new session, and nowhere else", async () => {
    const { cookie } = await door.signedUp("a@example.com");
    const other = await door.signedUp("b@example.com");
    const elsewhere = (await door.send("/auth/login", ann({ email: "a@example.com" }))).cookie;
    expect((await door.get("/settings", { cookie })).text).toContain(`href="${PATH}"`);
    const changed = await change(door, cookie);
    const to = changed.headers.get("location") ?? "";
    expect([changed.status, to]).toEqual([303, "/settings/password/changed"]);
    const now = cookiesIn(changed).join("; ");
    for (const load of ["once", "again"]) {
      expect({ load, text: (await door.get(to, { cookie: now })).text }).toEqual({
        load,
        text: expect.stringContaining("Your password is changed"),
      });
    }
    expect((await door.get(to, { cookie: changed.cookie })).headers.get("location")).toBe(PATH);
    expect(changed.cookie).not.toBe(cookie);
    expect(await Promise.all([changed.cookie, cookie, elsewhere, other.cookie].map(door.isIn))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(await logIn(door, "a@example.com", NEW_PASSWORD)).toBe(200);
    expect(await logIn(door, "a@example.com", PASSWORD)).toBe(401);
    expect(await logIn(door, "b@example.com", PASSWORD)).toBe(200);
  });

  test("is a line of the log that holds neither password, and so is one who lost it", async () => {
    await using house = await openPeopleDoor();
    const { cookie } = await house.signedUp();
    await change(house, cookie);
    const { store, secrets, clock } = house.engine;
    const token = await createOfferPassword({ ...store, secrets, clock })("ann@example.com");
    await house.form(`/welcome/${token}`, ann({ password: "the newest of all" }));
    const told = house.lines.filter((line) => JSON.stringify(line).includes("password.changed"));
    expect(told).toHaveLength(2);
    const person = (await store.people.find("ann@example.com"))?.person.id ?? "nobody";
    for (const line of told) expect(JSON.stringify(line)).toContain(person);
    for (const secret of [PASSWORD, NEW_PASSWORD, "the newest of all"]) {
      expect(JSON.stringify(house.lines)).not.toContain(secret);
    }
  });

  test("with a wrong one changes nothing, and is slowed down like a log-in: together with it", async () => {
    await using house = await openPeopleDoor();
    const { cookie } = await house.signedUp();
    for (let at = 0; at < 4; at += 1) {
      const wrong = await change(house, cookie, { current_password: "wrong wrong" });
      expect(wrong.status).toBe(401);
      expect(wrong.text).toContain("This is not your current password. Nothing was changed.");
      expect(wrong.text).not.toContain("wrong wrong");
    }
    expect(await logIn(house, "ann@example.com", "wrong wrong")).toBe(401);
    const refused = await change(house, cookie);
    expect({ status: refused.status, after: refused.headers.get("retry-after") }).toEqual({ status: 429, after: "60" });
    expect(await logIn(house, "ann@example.com", PASSWORD)).toBe(429);
    house.engine.clock.advance(60_000);
    expect(await logIn(house, "ann@example.com", PASSWORD)).toBe(200);
    expect((await change(house, cookie)).status).toBe(303);
  });

  test("is told what is wrong with what was typed, each at its field", async () => {
    const { cookie } = await door.signedUp("c@example.com");
    for (const [typed, fields] of [
      [{ password: "short" }, ["password"]],
      [{ current_password: "", password: "x".repeat(257) }, ["current_password", "password"]],
    ] as const) {
      const answer = await change(door, cookie, typed);
      expect({ status: answer.status, fields: problemsOf(answer) }).toEqual({ status: 400, fields: [...fields] });
      expect(answer.cookie).toBe("");
    }
    expect(await logIn(door, "c@example.com", PASSWORD)).toBe(200);
  });

  test("twice at once has one new password: the second is told that the first one is not theirs any more", async () => {
    const { cookie } = await door.signedUp("d@example.com");
    const racing = await Promise.all([
      change(door, cookie, { password: "the first of two" }),
      change(door, cookie, { password: "the second of two" }),
    ]);
    const statuses = racing.map(({ status }) => status);
    expect(statuses.filter((status) => status === 303)).toHaveLength(1);
    const kept = statuses[0] === 303 ? "the first of two" : "the second of two";
    expect(await logIn(door, "d@example.com", kept)).toBe(200);
  });

  test("voids the link that was handed out for a lost one", async () => {
    const { cookie } = await door.signedUp("e@example.com");
    const { store, secrets, clock } = door.engine;
    const token = await createOfferPassword({ ...store, secrets, clock })("e@example.com");
    expect((await door.get(`/welcome/${token}`)).status).toBe(200);
    await change(door, cookie);
    expect((await door.get(`/welcome/${token}`)).status).toBe(404);
  });
});

test("the password's page is for forms of our own page and session, and for nobody who is logged out", async () => {
  const { cookie } = await door.signedUp("f@example.com");
  const fields = { current_password: PASSWORD, password: NEW_PASSWORD };
  expect((await door.form(PATH, fields, { cookie })).status).toBe(403);
  const evil = await door.form(PATH, fields, { cookie, origin: "https://evil.example" });
  expect(evil.status).toBe(403);
  for (const answer of [await door.get(PATH), await door.form(PATH, fields)]) {
    expect(answer.headers.get("location")).toBe(`/login?next=${encodeURIComponent(PATH)}`);
  }
  expect(await logIn(door, "f@example.com", PASSWORD)).toBe(200);
});
