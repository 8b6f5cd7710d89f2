import { describe, expect, test } from "bun:test";
import { createSessionCookie } from "../../src/http/session.ts";
import { ann, openPeopleServer } from "./people-server.ts";
import { shared } from "../support/shared.ts";

const DAY_MS = 86_400_000;

const app = await shared(openPeopleServer());

describe("a session", () => {
  test("is 256 random bits, new at each login", async () => {
    await app.signedUp("a@example.com");
    const cookies = [];
    for (let at = 0; at < 5; at += 1) {
      cookies.push((await app.send("/auth/login", ann({ email: "a@example.com" }))).cookie);
    }
    expect(new Set(cookies).size).toBe(5);
    for (const cookie of cookies) expect(cookie).toMatch(/^outgate_session=[0-9a-f]{64}$/);
  });

  test("lasts seven days and not a moment longer, used or not", async () => {
    await using own = await openPeopleServer();
    const { cookie } = await own.signedUp();
    own.engine.clock.advance(7 * DAY_MS - 1);
    expect(await own.isIn(cookie)).toBe(true);
    own.engine.clock.advance(1);
    expect(await own.isIn(cookie)).toBe(false);
  });

  test("is nobody's under /v1 and at /mcp", async () => {
    const { cookie, accountId } = await app.signedUp("b@example.com");
    expect(await app.isIn(cookie)).toBe(true);
    for (const path of ["/v1/actions", "/v1/account", "/v1/keys", "/v1/signing-secret?origin=https://a.example"]) {
      const answer = await app.get(path, { cookie, origin: "http://127.0.0.1:3000" });
      expect([answer.status, answer.headers.get("www-authenticate")], path).toEqual([401, "Bearer"]);
    }
    const created = await app.send("/v1/actions", { url: "http://127.0.0.1:9/" }, { cookie });
    expect(created.status).toBe(401);
    const called = await app.send("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }, { cookie });
    expect([401, 404]).toContain(called.status);
    expect(await app.engine.store.actions.waiting()).toEqual({ pending: 0, active: 0, awaiting_approval: 0 });
    expect(accountId).toMatch(/^acc_/);
  });

  test.each([
    ["other cookies around it", (cookie: string) => `a=b; ${cookie}; outgate_session_x=1`, true],
    ["another one's name", (cookie: string) => cookie.replace("outgate_session", "session"), false],
    ["capitals", (cookie: string) => cookie.toUpperCase(), false],
    ["a letter more", (cookie: string) => `${cookie}0`, false],
    ["a letter less", (cookie: string) => cookie.slice(0, -1), false],
    [
      "its hash in its place",
      (cookie: string) => `outgate_session=${new Bun.CryptoHasher("sha256").update(cookie.slice(16)).digest("hex")}`,
      false,
    ],
  ])("is found by its cookie, with %s", async (_what, change, isIn) => {
    const { cookie } = await app.signedUp(`${Bun.randomUUIDv7()}@example.com`);
    expect(await app.isIn(change(cookie))).toBe(isIn);
  });
});

describe("its cookie", () => {
  const given = async (baseUrl: string) => {
    await using own = await openPeopleServer({ baseUrl });
    const { headers } = await own.send("/auth/signup", ann(), { origin: baseUrl });
    return headers.getSetCookie()[0] ?? "";
  };

  test("is no script's and no other site's, for the whole service, for seven days", async () => {
    expect(await given("http://127.0.0.1:3000")).toMatch(
      /^outgate_session=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/,
    );
  });

  test("with https never goes out in clear, and no other host can set it", async () => {
    expect(await given("https://outgate.example.com")).toMatch(
      /^__Host-outgate_session=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=604800$/,
    );
  });

  test("is read under the name that it was set with, and under no other", () => {
    const [plain, secure] = [createSessionCookie("http://a.example"), createSessionCookie("https://a.example")];
    const token = "ab".repeat(32);
    const sent = (value: string) => new Headers({ cookie: value.split(";")[0] ?? "" });
    expect(plain.read(sent(plain.set(token)))).toBe(token);
    expect(secure.read(sent(secure.set(token)))).toBe(token);
    expect(secure.read(sent(plain.set(token)))).toBeNull();
    expect(secure.clear()).toMatch(/^__Host-outgate_session=; Path=\/; .*Secure; Max-Age=0$/);
  });
});
