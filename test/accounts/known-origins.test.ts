import { expect, test } from "bun:test";
import type { UsedOrigins } from "../../src/core/account-store.ts";
import { knownOriginsOf } from "../../src/accounts/signing-secrets.ts";
import { KNOWN_ORIGINS_MAX } from "../../src/core/limits.ts";
import { later, NOON } from "../support/factory.ts";

const DAY_MS = 86_400_000;

const used = (more: Partial<UsedOrigins>): UsedOrigins => ({ calls: [], callbacks: [], rotations: [], ...more });

const A = "https://a.example";

test("origins stand with their newest use first, those that were only rotated last", () => {
  const calls = [
    { origin: A, lastUsedAt: NOON },
    { origin: "https://b.example", lastUsedAt: later(5) },
  ];
  const callbacks = [{ origin: A, lastUsedAt: later(2) }];
  const rotations = [{ origin: "https://old.example", use: "calls", rotatedAt: NOON }] as const;
  const known = knownOriginsOf(used({ calls, callbacks, rotations }), NOON);
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
      knownOriginsOf(used({ calls, callbacks, rotations }), later(DAY_MS)).map((one) => [one.use, one.rotatedAt]),
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
  const endAt = (now: Date) => knownOriginsOf(used({ rotations }), now)[0]?.previousExpiresAt;
  expect(endAt(later(DAY_MS - 1))).toEqual(later(DAY_MS));
  expect(endAt(later(DAY_MS))).toBeNull();
});

test("there are at most so many of each kind", () => {
  const calls = Array.from({ length: 2 * KNOWN_ORIGINS_MAX }, (_, at) => ({
    origin: `https://h${at}.example`,
    lastUsedAt: NOON,
  }));
  expect(knownOriginsOf(used({ calls }), NOON)).toHaveLength(KNOWN_ORIGINS_MAX);
});
