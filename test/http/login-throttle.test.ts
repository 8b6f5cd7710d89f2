import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { hiddenIn } from "../support/forms.ts";
import { ann, codeOf, openPeopleServer, PASSWORD, type PeopleAnswer, type PeopleServer } from "./people-server.ts";
import { until } from "../support/until.ts";

afterEach(() => mock.restore());

const wrong = (email: string) => ({ email, password: "wrong wrong" });

const statuses = async (app: PeopleServer, bodies: readonly object[]) => {
  const answers = [];
  for (const body of bodies) answers.push((await app.send("/auth/login", body)).status);
  return answers;
};

const forwarded = (address: string) => ({ "x-forwarded-for": address });

/** The proxy before the server is trusted, so that each client is told by its header. */
const behindProxy = () => openPeopleServer({ trustedProxies: ["127.0.0.1/32"] });

const afterOf = ({ headers }: PeopleAnswer) => headers.get("retry-after");

const deviceOf = ({ headers }: PeopleAnswer) =>
  /outgate_device=[^;]+/.exec(headers.getSetCookie().join("\n"))?.[0] ?? "";

describe("a sixth login", () => {
  test("after five wrong ones of an address from one client is 429, right or wrong, as long as it says", async () => {
    await using app = await openPeopleServer();
    await app.signedUp();
    const five = Array.from({ length: 5 }, (_, at) => wrong(at % 2 === 0 ? "ann@example.com" : "Ann@EXAMPLE.com"));
    expect(await statuses(app, [...five, wrong("ann@example.com"), ann()])).toEqual([
      401, 401, 401, 401, 401, 429, 429,
    ]);
    app.engine.clock.advance(20_500);
    const refused = await app.send("/auth/login", ann());
    expect({ code: codeOf(refused), after: afterOf(refused) }).toEqual({ code: "rate_limited", after: "40" });
    // So is an address that nobody has: it tells nothing.
    const six = Array.from({ length: 6 }, () => wrong("nobody@example.com"));
    expect(await statuses(app, six)).toEqual([401, 401, 401, 401, 401, 429]);
    // Others go on as they were.
    await app.signedUp("bob@example.com");
    expect(await statuses(app, [ann({ email: "bob@example.com" })])).toEqual([200]);
    app.engine.clock.advance(39_000);
    expect(await statuses(app, [ann()])).toEqual([429]);
    app.engine.clock.advance(1_000);
    expect(await statuses(app, [ann()])).toEqual([200]);
  });
});

describe("nobody is kept out", () => {
  test.each(["ann@example.com", "nobody@example.com"])(
    "by 300 wrong ones from 300 networks: of each address one waits, the others are 429: %s",
    async (email) => {
      await using app = await behindProxy();
      await app.signedUp();
      await app.signedUp("bob@example.com");
      const held = Promise.withResolvers<void>();
      const verify = Bun.password.verify.bind(Bun.password);
      const hashes = spyOn(Bun.password, "verify").mockImplementation(async (...given) => {
        await held.promise;
        return verify(...given);
      });
      const answered: PeopleAnswer[] = [];
      const flood = Array.from({ length: 300 }, async (_, at) => {
        const from = forwarded(`198.18.${at % 250}.${Math.floor(at / 250) + 1}`);
        answered.push(await app.send("/auth/login", wrong(at % 2 === 0 ? email : email.toUpperCase()), from));
      });
      await until(() => answered.length === 297);
      expect(answered.map(({ status }) => status)).toEqual(answered.map(() => 429));
      expect(new Set(answered.map(afterOf))).toEqual(new Set(["1"]));
      const right = app.send("/auth/login", ann(), forwarded("203.0.113.7"));
      const other = app.send("/auth/login", ann({ email: "bob@example.com" }), forwarded("203.0.113.8"));
      held.resolve();
      expect([(await right).status, (await other).status]).toEqual([200, 200]);
      await Promise.all(flood);
      // Two that ran, the two right ones, and one that waited for another address than hers.
      expect(hashes.mock.calls.length).toBeLessThanOrEqual(5);
    },
  );

  test("by wrong ones from their own network, where a cookie says that they have logged in before", async () => {
    await using app = await openPeopleServer();
    const answer = await app.send("/auth/signup", ann());
    const known = deviceOf(answer);
    const [, ofDevice = ""] = answer.headers.getSetCookie();
    expect(ofDevice).toMatch(
      /^outgate_device=per_\w+\.[0-9a-f]+\.\d+\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000$/,
    );
    expect(await app.isIn(known)).toBe(false);
    const bobs = deviceOf(await app.send("/auth/signup", ann({ email: "bob@example.com" })));
    for (let at = 0; at < 5; at += 1) await app.send("/auth/login", wrong("ann@example.com"));
    const logIn = async (device: string) => (await app.send("/auth/login", ann(), { cookie: `a=b; ${device}` })).status;
    // Another person's is worth nothing.
    expect([await logIn(""), await logIn(bobs), await logIn(known)]).toEqual([429, 429, 200]);
    app.engine.clock.advance(400 * 86_400_000);
    for (let at = 0; at < 5; at += 1) await app.send("/auth/login", wrong("ann@example.com"));
    expect(await logIn(known)).toBe(429);
  });

  test("in the change of their password either", async () => {
    await using app = await openPeopleServer();
    const answer = await app.send("/auth/signup", ann());
    const cookie = `${answer.cookie}; ${deviceOf(answer)}`;
    for (let at = 0; at < 6; at += 1) await app.send("/auth/login", wrong("ann@example.com"));
    const html = (await app.get("/settings/password", { cookie })).text;
    const { form_token = "" } = hiddenIn(html);
    const fields = { form_token, current_password: PASSWORD, password: "another horse battery" };
    expect((await app.form("/settings/password", fields, { cookie })).status).toBeLessThan(400);
    expect((await app.send("/auth/login", ann({ password: "another horse battery" }), { cookie })).status).toBe(200);
  });
});

test("behind a trusted proxy each client has a count of its own, and can write nobody else's address", async () => {
  await using app = await behindProxy();
  await app.signedUp();
  const from = async (address: string, body: object) =>
    (await app.send("/auth/login", body, forwarded(address))).status;
  for (let at = 0; at < 5; at += 1) await from("203.0.113.9", wrong("ann@example.com"));
  for (const forged of ["203.0.113.9", "198.51.100.7, 203.0.113.9", "127.0.0.1, 203.0.113.9", "x, 203.0.113.9:80"]) {
    expect(await from(forged, ann()), forged).toBe(429);
  }
  expect(await from("203.0.113.9, 198.51.100.7", ann())).toBe(200);
  expect(app.lines.at(-1)?.fields).toMatchObject({ route: "/auth/login", status: 200, client: "198.51.100.7" });
});

test("sign-ups of one client are twenty in a minute: then 429, as long as it says, whoever has the address", async () => {
  await using app = await behindProxy();
  const from = forwarded("203.0.113.9");
  const signUp = async (email: string) => (await app.send("/auth/signup", ann({ email }), from)).status;
  for (let at = 0; at < 10; at += 1) expect(await signUp(`p${at}@example.com`)).toBe(201);
  // To ask who has an address is counted too.
  for (let at = 0; at < 10; at += 1) expect(await signUp(`p${at}@example.com`)).toBe(409);
  app.engine.clock.advance(20_000);
  for (const email of ["p0@example.com", "new@example.com"]) expect(await signUp(email)).toBe(429);
  const page = await app.form("/auth/signup", ann({ email: "new@example.com" }), from);
  expect({ status: page.status, after: afterOf(page) }).toEqual({ status: 429, after: "40" });
  expect(page.text).toContain("Too many sign-ups from here. Try again in 40 s.");
});
