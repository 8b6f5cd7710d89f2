import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { createSigningService, knownOrigins } from "../../src/accounts/signing-secrets.ts";
import { SIGNING_USES, type UsedOrigins } from "../../src/core/account-store.ts";
import { KNOWN_ORIGINS_MAX } from "../../src/core/limits.ts";
import { anotherOwner } from "../actions/callers.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, requestFor, wrapping } from "../support/engine.ts";
import { later, NOON } from "../support/factory.ts";
import { type Received, Target } from "../support/target.ts";

const ORIGIN = "https://api.example.com";

const ELSEWHERE = "https://api.example.com:8443";

const HOUR_MS = 3_600_000;

const DAY_MS = 24 * HOUR_MS;

describe("the signing secret", () => {
  test("is another one for every origin, every account, and for calls and callbacks", async () => {
    await using engine = await openEngine({ starts: false });
    const service = engine.signingService;
    const other = await anotherOwner(engine);
    const origins = [ORIGIN, "http://api.example.com", ELSEWHERE, "https://example.com"];
    const secrets: string[] = [];
    for (const caller of [engine.owner, other]) {
      for (const origin of origins) {
        for (const use of SIGNING_USES) secrets.push((await service.read(caller, origin, use)).secret);
      }
    }
    expect(new Set(secrets).size).toBe(16);
  });
});

test("callbacks of before they had secrets of their own are signed with that of calls too, until it ends", async () => {
  const until = new Date(new FakeClock().now().getTime() + 2 * DAY_MS);
  const wrapStore = wrapping("signing", () => ({ callbackOverlap: async () => until }));
  await using engine = await openEngine({ starts: false, wrapStore });
  const { owner, clock, signingService: service } = engine;
  const calls = (await service.read(owner, ORIGIN)).secret;
  const own = await service.read(owner, ORIGIN, "callbacks");
  expect(own.previous).toEqual({ secret: calls, expiresAt: until });
  await service.rotate(owner, ORIGIN, "callbacks");
  const inUse = () => service.inUse(owner.accountId, ORIGIN, clock.now(), "callbacks");
  const newest = (await service.read(owner, ORIGIN, "callbacks")).secret;
  expect(await inUse()).toEqual([newest, own.secret, calls]);
  await service.rotate(owner, ORIGIN);
  const newCalls = (await service.read(owner, ORIGIN)).secret;
  expect(await inUse()).toEqual([newest, own.secret, newCalls, calls]);
  clock.advance(2 * DAY_MS - 1);
  expect(await inUse()).toEqual([newest, newCalls]);
  await service.rotate(owner, ORIGIN);
  expect(await inUse()).toEqual([newest, (await service.read(owner, ORIGIN)).secret, newCalls]);
  clock.advance(1);
  expect(await inUse()).toEqual([newest]);
});

describe("a rotation", () => {
  test("of one origin gives it a new secret; the one before it is shown and signs for 24 hours", async () => {
    await using engine = await openEngine({ starts: false });
    const { owner, clock } = engine;
    const service = engine.signingService;
    const [before, elsewhere] = [await service.read(owner, ORIGIN), await service.read(owner, ELSEWHERE)];
    const expiresAt = new Date(clock.now().getTime() + DAY_MS);
    expect(await service.rotate(owner, ORIGIN)).toEqual({
      origin: ORIGIN,
      rotatedAt: clock.now(),
      previousExpiresAt: expiresAt,
    });
    const after = await service.read(owner, ORIGIN);
    expect(after).toEqual({
      origin: ORIGIN,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      previous: { secret: before.secret, expiresAt },
    });
    expect(after.secret).not.toBe(before.secret);
    expect(await service.read(owner, ELSEWHERE)).toEqual(elsewhere);
    clock.advance(DAY_MS - 1);
    expect(await service.read(owner, ORIGIN)).toEqual(after);
    clock.advance(1);
    expect(await service.read(owner, ORIGIN)).toEqual({ ...after, previous: null });
  });

  test("counts for what is signed at the same time, whatever was read before it", async () => {
    const [read, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using engine = await openEngine({
      starts: false,
      wrapStore: wrapping("signing", (signing) => ({
        seeds: async (...place) => {
          const seeds = await signing.seeds(...place);
          read.resolve();
          await answer.promise;
          return seeds;
        },
      })),
    });
    const { owner, clock, signingService: service } = engine;
    const signing = () => service.inUse(owner.accountId, ORIGIN, clock.now(), "calls");
    const early = signing();
    await read.promise;
    await service.rotate(owner, ORIGIN);
    answer.resolve();
    expect(await early).toHaveLength(2);
    expect(await signing()).toEqual(await early);
  });

  test("by other accounts, however often, has what is read for a call read once", async () => {
    let reads = 0;
    await using engine = await openEngine({
      starts: false,
      wrapStore: wrapping("signing", (signing) => ({
        seeds: async (...place) => {
          reads += 1;
          // As if another one rotated its secrets all the time.
          if (reads < 5) await service.rotate(other, null);
          return signing.seeds(...place);
        },
      })),
    });
    const { owner, clock, signingService: service } = engine;
    const other = await anotherOwner(engine);
    expect(await service.inUse(owner.accountId, ORIGIN, clock.now(), "calls")).toHaveLength(1);
    expect(reads).toBe(1);
  });

  test("by another process on the same store is read at once, and signs within a minute", async () => {
    await using engine = await openEngine({ starts: false });
    const { owner, clock } = engine;
    const here = engine.signingService;
    const signing = () => here.inUse(owner.accountId, ORIGIN, clock.now(), "calls");
    // Its cache is dropped, ours is not.
    const there = createSigningService(engine.app, engine.secrets, 60_000);
    const [before] = await signing();
    await there.rotate(owner, ORIGIN);
    const after = await here.read(owner, ORIGIN);
    expect(after.previous?.secret).toBe(String(before));
    expect(await signing()).toEqual([String(before)]);
    clock.advance(60_000);
    expect(await signing()).toEqual([after.secret, String(before)]);
  });

  test("reads the store once for many attempts, and once more after it", async () => {
    let reads = 0;
    await using engine = await openEngine({
      starts: false,
      wrapStore: wrapping("signing", (signing) => ({
        seeds: (...place) => {
          reads += 1;
          return signing.seeds(...place);
        },
      })),
    });
    const { owner, clock } = engine;
    const read = async () => {
      for (let n = 0; n < 100; n += 1) await engine.signingService.inUse(owner.accountId, ORIGIN, clock.now(), "calls");
    };
    await read();
    expect(reads).toBe(1);
    await engine.signingService.rotate(owner, null);
    await read();
    expect(reads).toBe(2);
    // A clock that is set back makes no secret fresh for longer.
    clock.jump(-HOUR_MS);
    await read();
    expect(reads).toBe(3);
  });
});

/** The package judges by the machine's own time. */
const openNow = () => openEngine({ clock: new FakeClock(new Date()) });

const headersOf = ({ headers }: Pick<Received, "headers">) => ({
  "webhook-id": headers.get("webhook-id") ?? "",
  "webhook-timestamp": headers.get("webhook-timestamp") ?? "",
  "webhook-signature": headers.get("webhook-signature") ?? "",
});

describe("a delivery as its target receives it", () => {
  test("is signed with the secret of the account that sends it", async () => {
    await using target = new Target(200);
    await using engine = await openNow();
    const other = await anotherOwner(engine);
    const { origin } = new URL(target.url);
    await engine.actionService.create(other, requestFor({ url: target.url, body: "{}" }));
    await target.saw(1);
    const headers = headersOf(target.received[0] ?? { headers: new Headers() });
    const service = engine.signingService;
    const [theirs, mine] = await Promise.all([service.read(other, origin), service.read(engine.owner, origin)]);
    expect(new Webhook(theirs.secret).verify("{}", headers)).toEqual({});
    expect(() => new Webhook(mine.secret).verify("{}", headers)).toThrow("No matching signature");
  });

  test("is verified by both secrets after a rotation, by no third, and by the new one alone a day later", async () => {
    await using target = new Target(200);
    await using elsewhere = new Target(200);
    await using engine = await openNow();
    const { owner, clock } = engine;
    const service = engine.signingService;
    const secretOf = async ({ url }: Target) => (await service.read(owner, new URL(url).origin)).secret;
    const accepts = (secret: string, { body, headers }: Received) => {
      try {
        new Webhook(secret).verify(body, headersOf({ headers }));
        return true;
      } catch {
        return false;
      }
    };
    /** Which of these secrets verify a call that arrives there now. */
    const verifying = async (there: Target, secrets: readonly string[]) => {
      const { id } = await engine.create({ url: there.url, body: "{}" });
      await engine.saw(id, { status: "completed" });
      const call = there.received.find(({ headers }) => headers.get("webhook-id") === id);
      return secrets.map((secret) => call !== undefined && accepts(secret, call));
    };
    const secrets = [await secretOf(target)];
    for (const origin of [new URL(target.url).origin, null]) {
      await service.rotate(owner, origin);
      secrets.push(await secretOf(target));
    }
    // The second rotation came within a day of the first: the oldest secret is out at once.
    expect(await verifying(target, secrets)).toEqual([false, true, true]);
    expect(await verifying(elsewhere, [...secrets, await secretOf(elsewhere)])).toEqual([false, false, false, true]);
    // The package accepts no call that is a day away from its own clock, but it signs for any time.
    clock.advance(DAY_MS);
    const { id } = await engine.create({ url: target.url, body: "{}" });
    await engine.saw(id, { status: "completed" });
    const newest = new Webhook(secrets.at(-1) ?? "").sign(id, clock.now(), "{}");
    expect(target.received.at(-1)?.headers.get("webhook-signature")).toBe(newest);
  });
});

const used = (more: Partial<UsedOrigins>): UsedOrigins => ({ calls: [], callbacks: [], rotations: [], ...more });

const A = "https://a.example";

test("origins stand with their newest use first, those that were only rotated last", () => {
  const calls = [
    { origin: A, lastUsedAt: NOON },
    { origin: "https://b.example", lastUsedAt: later(5) },
  ];
  const callbacks = [{ origin: A, lastUsedAt: later(2) }];
  const rotations = [{ origin: "https://old.example", use: "calls", rotatedAt: NOON }] as const;
  const known = knownOrigins(used({ calls, callbacks, rotations }), NOON);
  expect(known.map(({ origin, use }) => `${use} ${origin}`)).toEqual([
    "calls https://b.example",
    `callbacks ${A}`,
    `calls ${A}`,
    "calls https://old.example",
  ]);
});

test("the newest rotation counts, of the origin alone or of all, of calls and callbacks apart", () => {
  const [calls, callbacks] = [[{ origin: A, lastUsedAt: NOON }], [{ origin: A, lastUsedAt: NOON }]];
  const of = (...rotations: UsedOrigins["rotations"]) =>
    Object.fromEntries(
      knownOrigins(used({ calls, callbacks, rotations }), later(DAY_MS)).map((one) => [one.use, one.rotatedAt]),
    );
  expect(of()).toEqual({ calls: null, callbacks: null });
  const all = { origin: null, use: null, rotatedAt: later(2) };
  const alone = { origin: A, use: "calls", rotatedAt: later(3) } as const;
  expect(of(all)).toEqual({ calls: later(2), callbacks: later(2) });
  expect(of(all, alone)).toEqual({ calls: later(3), callbacks: later(2) });
  expect(of({ ...all, use: "callbacks" })).toEqual({ calls: null, callbacks: later(2) });
});

test("the secret before a rotation signs for a day", () => {
  const rotations = [{ origin: A, use: "calls", rotatedAt: NOON }] as const;
  const endAt = (now: Date) => knownOrigins(used({ rotations }), now)[0]?.previousExpiresAt;
  expect(endAt(later(DAY_MS - 1))).toEqual(later(DAY_MS));
  expect(endAt(later(DAY_MS))).toBeNull();
});

test("there are at most so many of each kind", () => {
  const calls = Array.from({ length: 2 * KNOWN_ORIGINS_MAX }, (_, at) => ({
    origin: `https://h${at}.example`,
    lastUsedAt: NOON,
  }));
  expect(knownOrigins(used({ calls }), NOON)).toHaveLength(KNOWN_ORIGINS_MAX);
});
