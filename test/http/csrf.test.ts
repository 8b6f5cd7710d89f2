import { describe, expect, test } from "bun:test";
import { createOwnOrigin } from "../../src/http/own-origin.ts";
import { hiddenIn } from "../support/forms.ts";
import { ann, codeOf, openPeopleServer, type PeopleServer } from "./people-server.ts";
import { SESSION_SECRET } from "./signed-in.ts";
import { OWN_ORIGIN } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openPeopleServer());

describe("/auth", () => {
  test("from a page of another site is 403, as JSON and as a form, and nobody comes in or goes", async () => {
    const headers = { origin: "https://evil.example" };
    const { cookie } = await app.signedUp(`${Bun.randomUUIDv7()}@example.com`);
    const email = `${Bun.randomUUIDv7()}@example.com`;
    for (const path of ["/auth/signup", "/auth/login"]) {
      const json = await app.send(path, ann({ email }), headers);
      expect([json.status, codeOf(json), json.cookie]).toEqual([403, "forbidden", ""]);
      const form = await app.ask("POST", path, {
        body: new URLSearchParams(ann({ email }) as Record<string, string>),
        headers,
      });
      expect({ status: form.status, cookie: form.cookie }).toEqual({ status: 403, cookie: "" });
    }
    expect(await app.engine.store.people.find(email)).toBeNull();
    expect((await app.ask("POST", "/auth/logout", { headers: { ...headers, cookie } })).status).toBe(403);
    expect(await app.isIn(cookie)).toBe(true);
  });

  test("from our own page lets in and out", async () => {
    const headers = { origin: OWN_ORIGIN };
    const email = `${Bun.randomUUIDv7()}@example.com`;
    const { status, cookie } = await app.send("/auth/signup", ann({ email }), headers);
    expect(status).toBe(201);
    const body = new URLSearchParams(ann({ email }) as Record<string, string>);
    expect((await app.ask("POST", "/auth/login", { body, headers })).status).toBe(303);
    expect((await app.ask("POST", "/auth/logout", { headers: { ...headers, cookie } })).status).toBe(204);
    expect(await app.isIn(cookie)).toBe(false);
  });

  test("from no page at all lets in with JSON, and neither with a form nor out", async () => {
    const { cookie } = await app.signedUp("program@example.com");
    expect((await app.send("/auth/login", ann({ email: "program@example.com" }))).status).toBe(200);
    const body = new URLSearchParams(ann({ email: "program@example.com" }) as Record<string, string>);
    expect((await app.ask("POST", "/auth/login", { body })).status).toBe(403);
    const refused = await app.ask("POST", "/auth/logout", { headers: { cookie } });
    expect(refused.status).toBe(403);
    // It has sent no form, and is not told that it had.
    expect(refused.text).toContain("Forms and logouts are accepted only from Outgate");
    expect(await app.isIn(cookie)).toBe(true);
  });

  test("a program that reads our pages sends no form in another dress", async () => {
    for (const type of [
      "text/plain",
      "multipart/form-data; boundary=x",
      "application/x-www-form-urlencoded; charset=utf-16",
    ]) {
      const answer = await app.ask("POST", "/auth/login", {
        body: "email=ann%40example.com&password=12345678",
        headers: { "content-type": type, origin: OWN_ORIGIN },
      });
      expect([answer.status, codeOf(answer)], type).toEqual([400, "invalid_content_type"]);
    }
  });
});

/** What browsers and programs say of where they are, and who is taken by it: a form, JSON, and the form of an approval link. */
const SENT: readonly (readonly [where: string, headers: Readonly<Record<string, string>>, taken: string])[] = [
  ["our own page", { origin: OWN_ORIGIN }, "form JSON link"],
  ["our own page, told by Sec-Fetch-Site alone", { "sec-fetch-site": "same-origin" }, "form JSON link"],
  ["a program", {}, "JSON link"],
  ["a page that hides where it is", { origin: "null" }, "link"],
  ["one of ours that does", { origin: "null", "sec-fetch-site": "same-origin" }, "link"],
  ["one of others that does", { origin: "null", "sec-fetch-site": "cross-site" }, ""],
  ["another site", { origin: "https://evil.example" }, ""],
  ["another site that calls itself the same", { origin: "https://evil.example", "sec-fetch-site": "same-origin" }, ""],
  ["another site, told by Sec-Fetch-Site alone", { "sec-fetch-site": "cross-site" }, ""],
  ["a sibling, told by Sec-Fetch-Site alone", { "sec-fetch-site": "same-site" }, ""],
  ["a bookmark", { "sec-fetch-site": "none" }, ""],
  ["a host that begins like ours", { origin: "http://127.0.0.1.evil.example:3000" }, ""],
  ["our host with another port", { origin: "http://127.0.0.1:3001" }, ""],
  ["our host with another scheme", { origin: "https://127.0.0.1:3000" }, ""],
  ["another name of this machine", { origin: "http://localhost:3000" }, ""],
  ["two of them, ours first", { origin: `${OWN_ORIGIN}, https://evil.example` }, ""],
];

describe("own origins", () => {
  const isTaken = (check: () => void) => {
    try {
      check();
      return true;
    } catch {
      return false;
    }
  };

  test.each(SENT)("of %s are told by its headers", (_where, sent, taken) => {
    const headers = new Headers(sent);
    const own = createOwnOrigin({ baseUrl: OWN_ORIGIN });
    const kinds = [
      isTaken(() => own.require(headers)) ? ["form"] : [],
      isTaken(() => own.refuseOtherSites(headers)) ? ["JSON"] : [],
      isTaken(() => own.refuseOtherSitesButNull(headers)) ? ["link"] : [],
    ];
    expect(kinds.flat().join(" ")).toBe(taken);
  });

  const isOwn = (baseUrl: string, origin: string) =>
    isTaken(() => createOwnOrigin({ baseUrl }).require(new Headers({ origin })));

  test("are BASE_URL alone, in the spelling of browsers", () => {
    const address = "https://outgate.example.com";
    const origins = [
      "https://outgate.example.com",
      "https://outgate.example.com:443",
      "http://outgate.example.com",
      "http://127.0.0.1:3000",
      "http://localhost:3000",
    ];
    // A browser leaves the port of the scheme out; another spelling is nobody's.
    expect(origins.map((origin) => isOwn(address, origin))).toEqual([true, false, false, false, false]);
  });

  test("on loopback are that address, and no other name of this machine", () => {
    const address = "http://127.0.0.1:80";
    const origins = ["http://127.0.0.1", "http://localhost", "http://[::1]", "http://localhost:8080", "http://[::2]"];
    expect(origins.map((origin) => isOwn(address, origin))).toEqual([true, false, false, false, false]);
  });
});

describe("a change by cookie", () => {
  const PATH = "/settings/login/name";

  /** A session that one of our pages began, and the token of its forms. */
  const enter = async (server: PeopleServer, email: string, path = "/auth/signup") => {
    const { cookie } = await server.form(path, ann({ email }));
    const { form_token: token = "" } = hiddenIn((await server.get("/settings/login", { cookie })).text);
    return { cookie, token };
  };

  const nameOf = async (server: PeopleServer, { cookie }: { readonly cookie: string }) =>
    /name="name"[^>]* value="([^"]*)"/.exec((await server.get("/settings/login", { cookie })).text)?.[1];

  test("needs our own page and the session's token in its form; else nothing is changed", async () => {
    await using server = await openPeopleServer();
    const [one, other] = [await enter(server, "a@example.com"), await enter(server, "b@example.com")];
    const later = await enter(server, "a@example.com", "/auth/login");
    const { cookie, token } = one;
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(token).not.toBe(cookie.split("=")[1] ?? "");

    const change = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
      server.form(PATH, { name: "Acme", ...fields }, { cookie, ...headers });
    const refused = [
      await change({}),
      await change({ form_token: "" }),
      await change({ form_token: `${token}0` }),
      await change({ form_token: token.slice(0, -1) }),
      await change({ form_token: other.token }),
      await change({ form_token: later.token }),
      await change({ form_token: cookie.split("=")[1] ?? "" }),
      await change({ form_token: token }, { origin: "https://evil.example" }),
      await change({ form_token: token }, { origin: "null", "sec-fetch-site": "same-origin" }),
    ];
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 403));
    expect(await nameOf(server, one)).toBe("");
    expect((await change({ form_token: token })).status).toBe(303);
    expect(server.lines.at(-1)?.fields).toMatchObject({ person_id: expect.stringMatching(/^per_/), key_id: undefined });
    expect(await nameOf(server, one)).toBe("Acme");
  });

  test("is refused without a session, and with one that has ended", async () => {
    await using server = await openPeopleServer();
    const { cookie, token } = await enter(server, "a@example.com");
    await server.form("/auth/logout", { form_token: token }, { cookie });
    for (const headers of [{ cookie }, {}]) {
      const refused = await server.form(PATH, { name: "Acme", form_token: token }, headers);
      expect([refused.status, refused.headers.get("location")]).toEqual([303, expect.stringMatching(/^\/login/)]);
    }
  });

  test("by a form that is too large, not UTF-8, or has a field twice is refused", async () => {
    await using server = await openPeopleServer();
    const one = await enter(server, "a@example.com");
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const raw = async (rest: string | Uint8Array) => {
      const start = `form_token=${one.token}&session_secret=${SESSION_SECRET}&name=`;
      const body = Buffer.concat([Buffer.from(start), Buffer.from(rest)]);
      return (await server.ask("POST", PATH, { body, headers: { cookie: one.cookie, origin: OWN_ORIGIN, ...type } }))
        .status;
    };
    expect(await raw("x".repeat(65_536))).toBe(413);
    expect(await raw(Uint8Array.of(0xff))).toBe(400);
    expect(await raw("1&name=2")).toBe(400);
    expect([await raw("2"), await nameOf(server, one)]).toEqual([303, "2"]);
  });
});

describe("the logout of a page", () => {
  test("needs the session's token, and leads to the login", async () => {
    const signedUp = await app.form("/auth/signup", ann({ email: "gone@example.com" }));
    const { cookie } = signedUp;
    const refused = await app.form("/auth/logout", { form_token: "0".repeat(64) }, { cookie });
    expect([refused.status, refused.headers.get("content-type")]).toEqual([403, "text/html; charset=utf-8"]);
    expect(await app.isIn(cookie)).toBe(true);
    const { form_token } = hiddenIn((await app.get("/approvals", { cookie })).text);
    const answer = await app.form("/auth/logout", { form_token }, { cookie });
    expect({ status: answer.status, to: answer.headers.get("location") }).toEqual({ status: 303, to: "/login" });
    expect(answer.headers.get("set-cookie")).toContain("Max-Age=0");
    expect(await app.isIn(cookie)).toBe(false);
    // A second click, with the page of before.
    expect((await app.form("/auth/logout", { form_token: "x" }, { cookie })).status).toBe(303);
  });
});

test("GET and HEAD change nothing: they neither let in nor out nor take a link", async () => {
  await using own = await openPeopleServer();
  const { cookie } = await own.signedUp();
  const { store, secrets, clock } = own.engine;
  const token = secrets.newToken();
  const account = await store.accounts.first();
  const [createdAt, expiresAt] = [clock.now(), new Date(clock.now().getTime() + 1_000)];
  const link = { hash: secrets.hash(token), personId: null, accountId: account?.id ?? "", createdAt, expiresAt };
  await store.people.offer(link);
  const query = new URLSearchParams({ email: "eve@example.com", password: "12345678", form_token: "x" }).toString();
  for (const method of ["GET", "HEAD"]) {
    for (const path of ["/auth/signup", "/auth/login", "/auth/logout", "/login", "/signup", `/welcome/${token}`]) {
      for (const suffix of ["", `?${query}`]) {
        const { status } = await own.ask(method, path + suffix, { headers: { cookie, origin: OWN_ORIGIN } });
        expect([200, 303, 405].includes(status), path).toBe(true);
      }
    }
  }
  expect(await own.isIn(cookie)).toBe(true);
  expect(await store.people.find("eve@example.com")).toBeNull();
  expect(await store.people.link(link.hash, clock.now())).not.toBeNull();
});
