import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOfferPassword, createOfferWelcome } from "../../src/accounts/welcome-link.ts";
import { ann, openPeopleDoor, PASSWORD, type PeopleDoor } from "./people-house.ts";
import { KEYS, OWN_ORIGIN } from "./stub-house.ts";

const DAY_MS = 86_400_000;
const owner = { authorization: `Bearer ${KEYS.owner}` };
const emailOf = async (door: PeopleDoor) => {
  const { email }: { email: string | null } = JSON.parse((await door.get("/v1/account", owner)).text);
  return email;
};
const depsOf = ({ engine: { store, secrets, clock } }: PeopleDoor) => ({
  accounts: store.accounts,
  people: store.people,
  secrets,
  clock,
});
const offered = async (door: PeopleDoor) => `/welcome/${await createOfferWelcome(depsOf(door))()}`;
const renewal = async (door: PeopleDoor, email: string) => `/welcome/${await createOfferPassword(depsOf(door))(email)}`;

describe("the welcome of the first account", () => {
  let door: PeopleDoor;
  beforeAll(async () => {
    door = await openPeopleDoor();
  });
  afterAll(() => door[Symbol.asyncDispose]());

  test("lets its visitor become the account's first person, once", async () => {
    expect(await emailOf(door)).toBeNull();
    const path = await offered(door);
    const seen = await door.get(path);
    expect(seen.status).toBe(200);
    expect(seen.text).toContain(`action="${path}"`);
    expect(seen.text).toContain('autocomplete="new-password"');
    const taken = await door.form(path, ann());
    expect({ status: taken.status, to: taken.headers.get("location") }).toEqual({ status: 303, to: "/approvals" });
    expect(await door.isIn(taken.cookie)).toBe(true);
    expect(await emailOf(door)).toBe("ann@example.com");
    const again = await door.send("/auth/login", ann());
    expect(JSON.parse(again.text)).toEqual({
      account: { id: door.engine.owner.accountId, email: "ann@example.com" },
    });
    // Used, it is as unknown as one that never was.
    const [used, unknown] = [await door.get(path), await door.get(`/welcome/${"0".repeat(64)}`)];
    expect([used.status, unknown.status, (await door.form(path, ann({ email: "eve@example.com" }))).status]).toEqual([
      404, 404, 404,
    ]);
    const body = ({ text }: { text: string }) => text.replaceAll(/req_\w+/g, "");
    expect(body(used)).toBe(body(unknown));
    expect(used.text).toContain("outgate welcome-link");
    expect(await createOfferWelcome(depsOf(door))()).toBeNull();
  });
});

test.each([
  ["letters", "abc"],
  ["nothing", ""],
  ["a token of another form", "../../etc"],
  ["what can't be read", "%zz"],
  ["NUL", "%00"],
  ["a quote", "'--"],
])("a path of %s is no welcome", async (_what, token) => {
  await using door = await openPeopleDoor();
  expect((await door.get(`/welcome/${token}`)).status).toBe(404);
});

test("a welcome is neither looked up by search engines nor told to other sites", async () => {
  await using door = await openPeopleDoor();
  const { headers } = await door.get(await offered(door));
  expect(headers.get("x-robots-tag")).toBe("noindex, nofollow, noarchive");
  expect(headers.get("referrer-policy")).toBe("same-origin");
  expect(headers.get("cache-control")).toBe("private, no-store");
  expect(JSON.stringify(door.lines)).toContain("/welcome/{token}");
  expect(JSON.stringify(door.lines)).not.toMatch(/welcome\/[0-9a-f]/);
});

test("a welcome raced by many lets one of them in", async () => {
  await using door = await openPeopleDoor();
  const path = await offered(door);
  const racing = Array.from({ length: 12 }, (_, at) => door.form(path, ann({ email: `p${at}@example.com` })));
  const statuses = (await Promise.all(racing)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 303)).toHaveLength(1);
  expect(statuses.filter((status) => status === 404)).toHaveLength(11);
});

test("a welcome lasts seven days, and the next one voids it", async () => {
  await using door = await openPeopleDoor();
  const first = await offered(door);
  const second = await offered(door);
  expect((await door.get(first)).status).toBe(404);
  door.engine.clock.advance(7 * DAY_MS - 1);
  expect((await door.get(second)).status).toBe(200);
  door.engine.clock.advance(1);
  expect((await door.get(second)).status).toBe(404);
  expect((await door.form(second, ann())).status).toBe(404);
});

test("a welcome that is not taken stays: the form says what is wrong", async () => {
  await using door = await openPeopleDoor();
  await door.signedUp("taken@example.com");
  const path = await offered(door);
  const short = await door.form(path, ann({ password: "short" }));
  expect(short.status).toBe(400);
  expect(short.text).toContain("Has 8 to 256 characters.");
  expect(short.text).toContain('value="ann@example.com"');
  expect(short.text).toContain(`action="${path}"`);
  expect((await door.form(path, ann({ email: "TAKEN@example.com" }))).status).toBe(409);
  // From another site, and from none.
  expect((await door.form(path, ann(), { origin: "https://evil.example" })).status).toBe(403);
  const body = new URLSearchParams(ann() as Record<string, string>);
  expect((await door.ask("POST", path, { body })).status).toBe(403);
  expect((await door.send(path, ann(), { origin: OWN_ORIGIN })).status).toBe(400);
  expect(await emailOf(door)).toBeNull();
  expect((await door.form(path, ann())).status).toBe(303);
});

describe("a link for a lost password", () => {
  test("lets its person choose a new one: the old one and every other session are over", async () => {
    await using door = await openPeopleDoor();
    const { cookie } = await door.signedUp();
    const bob = await door.signedUp("bob@example.com");
    const path = await renewal(door, "ANN@example.com");
    const seen = await door.get(path);
    expect(seen.text).toContain("Choose a new password");
    expect(seen.text).toMatch(/name="email"[^>]*readonly[^>]*value="ann@example.com"/);
    expect(await door.isIn(cookie)).toBe(true);
    // Whatever the form says of the address: the link is one person's.
    const taken = await door.form(path, { email: "bob@example.com", password: "another password" });
    expect(taken.status).toBe(303);
    expect([await door.isIn(taken.cookie), await door.isIn(cookie), await door.isIn(bob.cookie)]).toEqual([
      true,
      false,
      true,
    ]);
    const logIn = async (email: string, password: string) =>
      (await door.send("/auth/login", { email, password })).status;
    expect(await logIn("ann@example.com", "another password")).toBe(200);
    expect(await logIn("ann@example.com", PASSWORD)).toBe(401);
    expect(await logIn("bob@example.com", PASSWORD)).toBe(200);
    expect((await door.form(path, ann())).status).toBe(404);
  });

  test("lasts a day, and is nobody's for an address that nobody has", async () => {
    await using door = await openPeopleDoor();
    await door.signedUp();
    expect(await createOfferPassword(depsOf(door))("nobody@example.com")).toBeNull();
    const path = await renewal(door, "ann@example.com");
    door.engine.clock.advance(DAY_MS - 1);
    expect((await door.get(path)).status).toBe(200);
    door.engine.clock.advance(1);
    expect((await door.get(path)).status).toBe(404);
    expect((await door.form(path, ann({ password: "another password" }))).status).toBe(404);
    expect((await door.send("/auth/login", ann())).status).toBe(200);
  });
});
