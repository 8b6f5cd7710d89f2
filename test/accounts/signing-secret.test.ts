import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { createReadSigningSecret } from "../../src/accounts/signing-secret.ts";
import { ROLES } from "../../src/domain/roles.ts";
import { anotherOwner, as, refusalOf } from "../actions/callers.ts";
import { verifies } from "../spec/verifies.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;
const ORIGIN = "https://api.example.com";

const readerOf = ({ signingSecretOf }: Engine) => createReadSigningSecret(signingSecretOf);

describe("the signing secret", () => {
  test("is read by an owner, the same each time, and has not been rotated", async () => {
    verifies("decision.12.signing-secret");
    await using engine = await openEngine({ starts: false });
    const read = readerOf(engine);
    const told = await read(engine.owner, ORIGIN);
    expect(told).toEqual({
      origin: ORIGIN,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      previous: null,
    });
    expect(await read(engine.owner, ORIGIN)).toEqual(told);
  });

  test.each(ROLES.filter((role) => role !== "owner"))("is not read by a key with the role %s", async (role) => {
    await using engine = await openEngine({ starts: false });
    expect(await refusalOf(readerOf(engine)(as(role, engine.owner), ORIGIN))).toMatchObject({ code: "forbidden" });
  });

  test("is another one for every origin and every account", async () => {
    verifies("decision.6.per-origin");
    await using engine = await openEngine({ starts: false });
    const read = readerOf(engine);
    const other = await anotherOwner(engine);
    const origins = [ORIGIN, "http://api.example.com", "https://api.example.com:8443", "https://example.com"];
    const secrets: string[] = [];
    for (const caller of [engine.owner, other]) {
      for (const origin of origins) secrets.push((await read(caller, origin)).secret);
    }
    expect(new Set(secrets).size).toBe(8);
  });

  test("is the same after a restart on the same files", async () => {
    await using folder = await temporaryFolder();
    const secretOnce = async () => {
      await using engine = await openEngine({ starts: false, folder: folder.path });
      return await readerOf(engine)(engine.owner, ORIGIN);
    };
    expect(await secretOnce()).toEqual(await secretOnce());
  });
});

describe("a delivery as its target receives it", () => {
  /** The package judges by the machine's own time. */
  const openNow = () => openEngine({ clock: new FakeClock(new Date()) });
  const signatureHeaders = (headers: Headers | undefined) => ({
    "webhook-id": headers?.get("webhook-id") ?? "",
    "webhook-timestamp": headers?.get("webhook-timestamp") ?? "",
    "webhook-signature": headers?.get("webhook-signature") ?? "",
  });

  test.each([
    ["POST", '{"a":"ä","n":1.0}'],
    ["DELETE", null],
    ["GET", null],
  ] as const)("%s is verified by the package of Standard Webhooks under the origin's secret", async (method, body) => {
    verifies("decision.6.standard-webhooks", "decision.6.per-origin", "spec.service.sign", "spec.events.signed");
    await using target = new Target(200);
    await using engine = await openNow();
    const { id } = await engine.create({ url: `${target.url}orders?x=1`, method, body });
    await engine.saw(id, { status: "completed" });
    const [received] = target.received;
    const headers = signatureHeaders(received?.headers);
    expect(headers["webhook-id"]).toBe(id);
    expect(received?.body).toBe(body ?? "");
    const { secret } = await readerOf(engine)(engine.owner, new URL(target.url).origin);
    expect(new Webhook(secret).verify(received?.body ?? "", headers)).toEqual(
      body === null ? undefined : { a: "ä", n: 1 },
    );

    expect(() => new Webhook(secret).verify(`${received?.body} `, headers)).toThrow("No matching signature");
    const wrong = await readerOf(engine)(engine.owner, "http://127.0.0.1:1");
    expect(() => new Webhook(wrong.secret).verify(received?.body ?? "", headers)).toThrow("No matching signature");
  });

  test("is signed with the secret of the account that sends it", async () => {
    verifies("decision.6.per-origin");
    await using target = new Target(200);
    await using engine = await openNow();
    const other = await anotherOwner(engine);
    const { origin } = new URL(target.url);
    await engine.desk.create(other, requestFor({ url: target.url, body: "{}" }));
    await target.saw(1);
    const headers = signatureHeaders(target.received[0]?.headers);
    const [theirs, mine] = await Promise.all([readerOf(engine)(other, origin), readerOf(engine)(engine.owner, origin)]);
    expect(new Webhook(theirs.secret).verify("{}", headers)).toEqual({});
    expect(() => new Webhook(mine.secret).verify("{}", headers)).toThrow("No matching signature");
  });
});
