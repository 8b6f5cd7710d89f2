import { describe, expect, test } from "bun:test";
import { createResetLink, createWelcomeLink } from "../../src/accounts/welcome-links.ts";
import { ann, openPeopleServer, PASSWORD, type PeopleServer } from "./people-server.ts";
import { KEYS, OWN_ORIGIN } from "./stub-server.ts";

const DAY_MS = 86_400_000;

const owner = { authorization: `Bearer ${KEYS.owner}` };

const emailOf = async (app: PeopleServer) => {
  const { email }: { email: string | null } = JSON.parse((await app.get("/v1/account", owner)).text);
  return email;
};

const depsOf = ({ engine: { store, secrets, clock } }: PeopleServer) => ({
  accounts: store.accounts,
  people: store.people,
  secrets,
  clock,
});

const offered = async (app: PeopleServer) => `/welcome/${await createWelcomeLink(depsOf(app))}`;

const renewal = async (app: PeopleServer, email: string) => `/welcome/${await createResetLink(depsOf(app), email)}`;

test("a welcome lets its visitor become the first account's first person, once", async () => {
  await using app = await openPeopleServer();
  expect(await emailOf(app)).toBeNull();
  const path = await offered(app);
  const seen = await app.get(path);
  expect(seen.status).toBe(200);
  expect(seen.text).toContain(`action="${path}"`);
  expect(seen.text).toContain('autocomplete="new-password"');
  const taken = await app.form(path, ann());
  expect({ status: taken.status, to: taken.headers.get("location") }).toEqual({ status: 303, to: "/get-started" });
  expect(await app.isIn(taken.cookie)).toBe(true);
  expect(await emailOf(app)).toBe("ann@example.com");
  const again = await app.send("/auth/login", ann());
  expect(JSON.parse(again.text)).toEqual({ account: { id: app.engine.owner.accountId, email: "ann@example.com" } });
  // Used, it is as unknown as one that never was.
  const [used, unknown] = [await app.get(path), await app.get(`/welcome/${"0".repeat(64)}`)];
  expect([used.status, unknown.status, (await app.form(path, ann({ email: "eve@example.com" }))).status]).toEqual([
    404, 404, 404,
  ]);
  const body = ({ text }: { text: string }) => text.replaceAll(/req_\w+/g, "");
  expect(body(used)).toBe(body(unknown));
  expect(used.text).toContain("outgate welcome-link");
  expect(await createWelcomeLink(depsOf(app))).toBeNull();
});

test("a welcome lasts seven days, and the next one voids it", async () => {
  await using app = await openPeopleServer();
  const first = await offered(app);
  const second = await offered(app);
  expect((await app.get(first)).status).toBe(404);
  app.engine.clock.advance(7 * DAY_MS - 1);
  expect((await app.get(second)).status).toBe(200);
  app.engine.clock.advance(1);
  expect((await app.get(second)).status).toBe(404);
  expect((await app.form(second, ann())).status).toBe(404);
});

test("a welcome that is not taken stays: the form says what is wrong", async () => {
  await using app = await openPeopleServer();
  await app.signedUp("taken@example.com");
  const path = await offered(app);
  const short = await app.form(path, ann({ password: "short" }));
  expect(short.status).toBe(400);
  expect(short.text).toContain("Use 8 to 256 characters.");
  expect(short.text).toContain('value="ann@example.com"');
  expect(short.text).toContain(`action="${path}"`);
  expect((await app.form(path, ann({ email: "TAKEN@example.com" }))).status).toBe(409);
  // From another site, and from none.
  expect((await app.form(path, ann(), { origin: "https://evil.example" })).status).toBe(403);
  const body = new URLSearchParams(ann() as Record<string, string>);
  expect((await app.ask("POST", path, { body })).status).toBe(403);
  expect((await app.send(path, ann(), { origin: OWN_ORIGIN })).status).toBe(400);
  expect(await emailOf(app)).toBeNull();
  expect((await app.form(path, ann())).status).toBe(303);
});

describe("a link for a lost password", () => {
  test("lets its person choose a new one: the old one and every other session are over", async () => {
    await using app = await openPeopleServer();
    const { cookie, key } = await app.signedUp();
    const bob = await app.signedUp("bob@example.com");
    const path = await renewal(app, "ANN@example.com");
    const seen = await app.get(path);
    expect(seen.text).toContain("Choose a new password");
    expect(seen.text).toMatch(/name="email"[^>]*readonly[^>]*value="ann@example.com"/);
    expect(await app.isIn(cookie)).toBe(true);
    // Whatever the form says of the address: the link is one person's.
    const taken = await app.form(path, { email: "bob@example.com", password: "another password" });
    expect(taken.status).toBe(303);
    expect([await app.isIn(taken.cookie), await app.isIn(cookie), await app.isIn(bob.cookie)]).toEqual([
      true,
      false,
      true,
    ]);
    const logIn = async (email: string, password: string) =>
      (await app.send("/auth/login", { email, password })).status;
    expect(await logIn("ann@example.com", "another password")).toBe(200);
    expect(await logIn("ann@example.com", PASSWORD)).toBe(401);
    expect(await logIn("bob@example.com", PASSWORD)).toBe(200);
    expect((await app.form(path, ann())).status).toBe(404);
    const log = await app.get("/v1/audit?kind=password_changed", { authorization: `Bearer ${key}` });
    expect(log.text).toContain('"actor":"user:ann@example.com","kind":"password_changed","subject":"ann@example.com"');
  });

  test("lasts a day, and is nobody's for an address that nobody has", async () => {
    await using app = await openPeopleServer();
    await app.signedUp();
    expect(await createResetLink(depsOf(app), "nobody@example.com")).toBeNull();
    const path = await renewal(app, "ann@example.com");
    app.engine.clock.advance(DAY_MS - 1);
    expect((await app.get(path)).status).toBe(200);
    app.engine.clock.advance(1);
    expect((await app.get(path)).status).toBe(404);
    expect((await app.form(path, ann({ password: "another password" }))).status).toBe(404);
    expect((await app.send("/auth/login", ann())).status).toBe(200);
  });
});
