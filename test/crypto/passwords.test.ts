import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { DomainError } from "../../src/core/domain-error.ts";
import {
  PASSWORD_HASHES_MAX,
  PASSWORD_HASHES_WAITING_MAX,
  PASSWORD_HASHES_WAITING_PER_LANE_MAX,
} from "../../src/core/limits.ts";
import { createPasswords } from "../../src/crypto/passwords.ts";

const TURN = { lane: "192.0.2.1", isKnown: false, email: null };

const CHEAP = { memoryKib: 8, passes: 1 };

afterEach(() => mock.restore());

describe("a password", () => {
  test("is hashed with argon2id at Bun's cost, with a salt of its own", async () => {
    const passwords = createPasswords();
    const [one, other] = [await passwords.hash("correct horse", TURN), await passwords.hash("correct horse", TURN)];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=65536,t=2,p=1\$[A-Za-z0-9+/]{43}\$[A-Za-z0-9+/]{43}$/);
    expect(other).not.toBe(one);
    expect(await passwords.verify("correct horse", one, TURN)).toBe(true);
  });

  test("is told by every character, and not by how its letters were put together", async () => {
    const passwords = createPasswords(CHEAP);
    const hash = await passwords.hash("Zoe\u0308 likes cafe\u0301", TURN);
    expect(await passwords.verify("Zoë likes café", hash, TURN)).toBe(true);
    for (const wrong of ["Zoe likes cafe", "zoë likes café", "Zoë likes café ", "Zoë likes caf", ""]) {
      // The engine takes no empty one; the contract lets none come so far.
      expect(await passwords.verify(wrong, hash, TURN).catch(() => false)).toBe(false);
    }
  });

  test.each(["a".repeat(256), "\u{1f600}".repeat(256), "\ufdfa".repeat(256)])(
    "of 256 characters counts to its last",
    async (long) => {
      const passwords = createPasswords(CHEAP);
      const hash = await passwords.hash(long, TURN);
      expect(await passwords.verify(long, hash, TURN)).toBe(true);
      expect(await passwords.verify(`${Array.from(long).slice(0, 255).join("")}b`, hash, TURN)).toBe(false);
    },
  );

  test("is nobody's where there is no hash, and the work is that of the real ones", async () => {
    const verify = spyOn(Bun.password, "verify");
    expect(await createPasswords().verify("correct horse", null, TURN)).toBe(false);
    const [, hash] = verify.mock.calls[0] ?? [];
    // Of one form with the hashes of people, so that it takes as long.
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=65536,t=2,p=1\$[A-Za-z0-9+/]{43}\$[A-Za-z0-9+/]{43}$/);
  });
});

describe("hashes", () => {
  /** Work that ends when the test says so. */
  function slowHashes() {
    const ends: (() => void)[] = [];
    const seen = { running: 0, most: 0, begun: [] as string[] };
    const work = async (password: unknown): Promise<string> => {
      const text = typeof password === "string" ? password : "bytes";
      seen.running += 1;
      seen.most = Math.max(seen.most, seen.running);
      seen.begun.push(text);
      await new Promise<void>((resolve) => ends.push(resolve));
      seen.running -= 1;
      return text;
    };
    spyOn(Bun.password, "hash").mockImplementation(async (password) => {
      const text = await work(password);
      if (text === "broken") throw new Error("broken");
      return `hash of ${text}`;
    });
    spyOn(Bun.password, "verify").mockImplementation(async (password) => {
      await work(password);
      return true;
    });
    const endAll = async (all: readonly Promise<unknown>[]) => {
      let isOver = false;
      const over = Promise.allSettled(all).then((settled) => ((isOver = true), settled));
      while (!isOver) {
        ends.splice(0).forEach((end) => end());
        await new Promise((resolve) => setImmediate(resolve));
      }
      return over;
    };
    return { seen, endAll };
  }

  test("are made and looked at two at a time, in the order in which they came", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const asked = Array.from({ length: 20 }, (_, at) =>
      at % 2 === 0 ? passwords.hash(`p${at}`, TURN) : passwords.verify(`p${at}`, null, TURN),
    );
    await endAll(asked);
    expect(PASSWORD_HASHES_MAX).toBe(2);
    expect(seen.most).toBe(2);
    expect(seen.begun).toEqual(asked.map((_, at) => `p${at}`));
    const askAgain = async () => [await passwords.hash("one", TURN), await passwords.hash("another", TURN)];
    await endAll(Array.from({ length: 9 }, askAgain));
    expect(seen.most).toBe(2);
  });

  test("of one client wait in a line that has an end, beyond which one is told to come back", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const room = PASSWORD_HASHES_MAX + PASSWORD_HASHES_WAITING_PER_LANE_MAX;
    const asked = Array.from({ length: room }, (_, at) => passwords.hash(`p${at}`, TURN));
    const refused: unknown = await passwords.hash("late", TURN).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DomainError);
    expect(refused).toMatchObject({ code: "unavailable" });
    expect((await endAll(asked)).every(({ status }) => status === "fulfilled")).toBe(true);
    expect(seen.begun).not.toContain("late");
    await endAll([passwords.hash("later", TURN)]);
    expect(seen.begun).toContain("later");
  });

  test("of many clients are made in turn: whoever asks for one does not wait for those who ask for many", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const flood = Array.from({ length: 60 }, (_, at) => passwords.hash(`flood`, { ...TURN, lane: `client ${at % 3}` }));
    const asked = [...flood, passwords.hash("one", { ...TURN, lane: "a newcomer" })];
    await endAll(asked);
    // Two were under way, and each of three lanes has one before it.
    expect(seen.begun.indexOf("one")).toBeLessThanOrEqual(5);
  });

  test("of a newcomer take the place of whoever has the most, where all places are taken", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const lanes = PASSWORD_HASHES_WAITING_MAX / PASSWORD_HASHES_WAITING_PER_LANE_MAX;
    const flood = Array.from({ length: PASSWORD_HASHES_MAX + PASSWORD_HASHES_WAITING_MAX }, (_, at) =>
      passwords.hash("flood", { ...TURN, lane: `client ${at % lanes}` }),
    );
    const newcomers = Array.from({ length: 40 }, (_, at) => passwords.hash("one", { ...TURN, lane: `newcomer ${at}` }));
    const settled = await endAll([...flood, ...newcomers]);
    const refused = settled.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(40);
    expect(seen.begun.filter((password) => password === "one")).toHaveLength(40);
    expect((await Promise.allSettled(newcomers)).every(({ status }) => status === "fulfilled")).toBe(true);
  });

  test("of known devices are made first, and leave every third turn to the others", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const strangers = Array.from({ length: 20 }, () => passwords.hash("stranger", TURN));
    const known = Array.from({ length: 12 }, (_, at) =>
      passwords.hash("known", { lane: `person ${at}`, isKnown: true, email: null }),
    );
    await endAll([...strangers, ...known]);
    expect(seen.begun.slice(2, 11).join(" ")).toBe("known known stranger known known stranger known known stranger");
    expect(seen.begun.slice(0, 20).filter((who) => who === "known")).toHaveLength(12);
  });

  test("of one address wait one at a time, whoever submits it; the others are told to come back", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const guesses = Array.from({ length: 300 }, (_, at) =>
      passwords.verify(`guess ${at}`, null, { lane: `network ${at}`, isKnown: false, email: "ann@example.com" }),
    );
    const other = passwords.verify("bob", null, { lane: "home", isKnown: false, email: "bob@example.com" });
    // Her own device is known, and other strangers have other addresses: both wait for no guess but those that run.
    const known = passwords.verify("known", null, { lane: "ann", isKnown: true, email: null });
    const right = passwords.verify("right", null, { lane: "cafe", isKnown: false, email: "ann@example.com" });
    const settled = await endAll(guesses);
    await endAll([other, known, right]);
    const refused = settled.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(298);
    expect(refused[0]).toMatchObject({ reason: { code: "rate_limited", retryAfterSeconds: 1 } });
    expect(seen.begun.slice(0, 2)).toEqual(["guess 0", "guess 1"]);
    expect(seen.begun.slice(2).toSorted()).toEqual(["bob", "known", "right"]);
  });

  test("of one address go to the client that has asked less often", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const from = (lane: string) =>
      passwords.verify(lane, null, { lane, isKnown: false, email: "ann@example.com" }).catch(String);
    const before = ["eve", "mallory", "eve", "mallory"].map(from);
    const ann = from("ann");
    // They have asked twice and more by now.
    const after = ["eve", "mallory", "eve", "mallory"].map(from);
    await endAll([...before, ann, ...after]);
    expect(seen.begun).toEqual(["eve", "mallory", "ann"]);
    // When nobody asks any more, nothing is remembered.
    await endAll(["ann", "ann", "ann", "eve"].map(from));
    expect(seen.begun.splice(0).slice(3)).toEqual(["ann", "ann", "eve"]);
    // Whoever comes when the one that has waited is under way waits next.
    const other = () => passwords.hash("other", TURN);
    await endAll([from("ann").then(() => from("eve")), other(), from("ann"), other()]);
    expect(seen.begun).toEqual(["ann", "other", "ann", "other", "eve"]);
  });

  test("that fail give their turn on", async () => {
    const { endAll } = slowHashes();
    const passwords = createPasswords();
    const settled = await endAll(Array.from({ length: 9 }, () => passwords.hash("broken", TURN)));
    expect(settled.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => "rejected" as const));
    const [last] = await endAll([passwords.hash("sound", TURN)]);
    expect(last).toEqual({ status: "fulfilled", value: "hash of sound" });
  });
});
