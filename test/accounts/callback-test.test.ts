import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { type Received, type Script, Target } from "../support/target.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer()));

const list = (target: Target) => app.call("POST", "/v1/callback-hosts", { host: new URL(target.url).host });

async function tested(url: string, wrong: boolean, key?: string) {
  const { status, text } = await app.call("POST", "/v1/callback-hosts/test", { url, wrong_signature: wrong }, key);
  return { status, json: JSON.parse(text) };
}

const isSignatureDone = async () => {
  const { text } = await app.call("GET", "/v1/first-steps");
  return JSON.parse(text).data.find(({ step }: { step: string }) => step === "signature").done;
};

/** A receiver that verifies as the documentation says. */
async function verifying(target: Target) {
  const path = `/v1/signing-secret?origin=${new URL(target.url).origin}&for=callbacks`;
  const { secret } = (await app.call("GET", path)).json;
  return ({ headers, body }: Received) => {
    const seconds = Number(headers.get("webhook-timestamp"));
    // The library compares with the clock of this machine, and the service of the test has its own.
    const right = new Webhook(secret).sign(headers.get("webhook-id") ?? "", new Date(seconds * 1_000), body);
    return right === headers.get("webhook-signature");
  };
}

describe("POST /v1/callback-hosts/test", () => {
  test("sends a signed callback, and then one that a receiver that verifies refuses", async () => {
    let isRight: (received: Received) => boolean = () => true;
    await using target = new Target((received) => new Response(null, { status: isRight(received) ? 204 : 401 }));
    isRight = await verifying(target);
    await list(target);
    const url = `${target.url}hook?token=t`;
    const { status, json } = await tested(url, true);
    const time = { duration_ms: expect.any(Number) };
    expect([status, json]).toEqual([
      200,
      {
        delivered: true,
        verifies: true,
        signed: { response_code: 204, error: null, ...time },
        wrong_signature: { response_code: 401, error: expect.stringContaining("401"), ...time },
      },
    ]);
    const [first, second] = target.received;
    expect(target.received).toHaveLength(2);
    expect(first).toMatchObject({ method: "POST", path: "/hook?token=t" });
    expect(JSON.parse(first?.body ?? "")).toEqual({
      type: "callback.test",
      timestamp: app.engine.clock.now().toISOString(),
      data: { message: expect.stringContaining("test callback") },
    });
    expect(first?.headers.get("webhook-id")).toMatch(/^test_/);
    expect(second?.headers.get("webhook-id")).not.toBe(first?.headers.get("webhook-id") ?? "");
    // Of the form of a right one, so that nothing but the digest is refused.
    expect(second?.headers.get("webhook-signature")).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
    expect(await isSignatureDone()).toBe(true);
    const { text } = await app.call("GET", "/v1/audit?kind=callback_tested");
    expect(JSON.parse(text).data).toMatchObject([
      { subject: new URL(url).host, detail: { delivered: true, verifies: true } },
    ]);
    expect(text).not.toContain("token=");
  });

  test.each<[string, Script[], object]>([
    ["takes both", [200], { delivered: true, verifies: false }],
    ["is away for the second", [200, 503], { delivered: true, verifies: null }],
    ["is too busy for the second", [200, 429], { delivered: true, verifies: null }],
    ["refuses the first", [401], { delivered: false, verifies: null, wrong_signature: null }],
  ])("tells of a receiver that %s what is known, and no step is done", async (_name, script, told) => {
    await using target = new Target(...script);
    await list(target);
    const { json } = await tested(target.url, true);
    expect(json).toMatchObject(told);
    expect(target.received).toHaveLength(json.delivered ? 2 : 1);
    expect(await isSignatureDone()).toBe(false);
  });

  test("sends one alone unless it is asked for more, and so many in a time", async () => {
    await using target = new Target(200);
    await list(target);
    expect((await tested(target.url, false)).json).toMatchObject({ delivered: true, verifies: null });
    expect(target.received).toHaveLength(1);
    expect((await tested(target.url, false)).status).toBe(429);
    app.engine.clock.advance(1_001);
    expect((await tested(target.url, false)).status).toBe(200);
  });

  test("sends nothing to a host that is not listed, or that no call may go to", async () => {
    await using target = new Target(200);
    await list(target);
    const [{ port }, otherPort] = [new URL(target.url), new URL("http://127.0.0.1:9/")];
    await app.call("POST", "/v1/callback-hosts", '{"host":"10.0.0.7"}');
    await app.call("POST", "/v1/callback-hosts", '{"host":"169.254.169.254"}');
    for (const url of [
      `http://localhost:${port}/`,
      otherPort.href,
      "http://10.0.0.7/",
      "http://169.254.169.254/latest",
      "ftp://127.0.0.1/",
    ]) {
      const { status, json } = await tested(url, true);
      expect([status, json.error?.details?.[0]?.field], url).toEqual([400, "url"]);
    }
    expect(target.received).toEqual([]);
  });

  test("is closed to owner keys with a hold, or with limits that the URL is beyond", async () => {
    await using target = new Target(200);
    await list(target);
    const keyWith = async (more: object) => {
      return (await app.call("POST", "/v1/keys", { name: "x", role: "owner", ...more })).json.key;
    };
    for (const more of [{ hold: "writes" }, { hold: "all" }, { hosts: ["a.example"] }, { methods: ["GET"] }]) {
      expect((await tested(target.url, true, await keyWith(more))).status).toBe(403);
    }
    expect(target.received).toEqual([]);
    expect((await tested(target.url, false, await keyWith({ hosts: ["127.0.0.1"] }))).status).toBe(200);
  });
});

test("the page of callback hosts sends a test and says how it fared", async () => {
  await using target = new Target(200, 401, 200, 200);
  const ann = await signedIn(app);
  expect(await ann.pageOf("/settings/callback-hosts")).not.toContain("Test a receiver");
  await list(target);
  const own = await ann.hiddenOf("/settings/callback-hosts");
  const send = async (fields: Readonly<Record<string, string>>) =>
    ann.send("/settings/callback-hosts/test", { ...own, url: `${target.url}?k=v`, ...fields });
  const done = await send({ wrong_signature: "yes" });
  expect([done.status, done.headers.get("location")]).toEqual([303, "/settings/callback-hosts"]);
  const html = await (await ann.follow(done)).text();
  for (const shown of ["The callback was delivered: 200", "it refused the wrong one with 401", `${target.url}?k=v`]) {
    expect(html).toContain(shown);
  }
  const early = await send({});
  expect([early.status, await early.text()]).toEqual([429, expect.stringContaining("Try again in")]);
  app.engine.clock.advance(1_001);
  expect(await (await ann.follow(await send({ wrong_signature: "yes" }))).text()).toContain(
    "does not verify signatures",
  );
  const refused = await send({ url: "https://other.example/" });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("not on the list")]);
});
