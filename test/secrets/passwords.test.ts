import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { DomainError } from "../../src/domain/errors.ts";
import { PASSWORD_HASHES_MAX, PASSWORD_HASHES_WAITING_MAX } from "../../src/domain/limits.ts";
import { createPasswords } from "../../src/secrets/passwords.ts";
import { verifies } from "../spec/verifies.ts";

const CHEAP = { memoryKib: 8, passes: 1 };
afterEach(() => mock.restore());

describe("a password", () => {
  test("is hashed with argon2id at Bun's cost, with a salt of its own", async () => {
    const passwords = createPasswords();
    const [one, other] = [await passwords.hash("correct horse"), await passwords.hash("correct horse")];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=65536,t=2,p=1\$[A-Za-z0-9+/]{43}\$[A-Za-z0-9+/]{43}$/);
    expect(other).not.toBe(one);
    expect(await passwords.verify("correct horse", one)).toBe(true);
  });

  test("is told by every character, and not by how its letters were put together", async () => {
    const passwords = createPasswords(CHEAP);
    const hash = await passwords.hash("Zoe\u0308 likes cafe\u0301");
    expect(await passwords.verify("Zoë likes café", hash)).toBe(true);
    for (const wrong of ["Zoe likes cafe", "zoë likes café", "Zoë likes café ", "Zoë likes caf", ""]) {
      // The engine takes no empty one; the contract lets none come so far.
      expect(await passwords.verify(wrong, hash).catch(() => false)).toBe(false);
    }
  });

  test.each(["a".repeat(256), "\u{1f600}".repeat(256), "\ufdfa".repeat(256)])(
    "of 256 characters counts to its last",
    async (long) => {
      const passwords = createPasswords(CHEAP);
      const hash = await passwords.hash(long);
      expect(await passwords.verify(long, hash)).toBe(true);
      expect(await passwords.verify(`${Array.from(long).slice(0, 255).join("")}b`, hash)).toBe(false);
    },
  );

  test("is nobody's where there is no hash, and the work is that of the real ones", async () => {
    const verify = spyOn(Bun.password, "verify");
    expect(await createPasswords().verify("correct horse", null)).toBe(false);
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
    verifies("hostile.1.two-hashes");
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const asked = Array.from({ length: 20 }, (_, at) =>
      at % 2 === 0 ? passwords.hash(`p${at}`) : passwords.verify(`p${at}`, null),
    );
    await endAll(asked);
    expect(PASSWORD_HASHES_MAX).toBe(2);
    expect(seen.most).toBe(2);
    expect(seen.begun).toEqual(asked.map((_, at) => `p${at}`));
  });

  test("wait in a line that has an end, beyond which one is told to come back", async () => {
    const { seen, endAll } = slowHashes();
    const passwords = createPasswords();
    const room = PASSWORD_HASHES_MAX + PASSWORD_HASHES_WAITING_MAX;
    const asked = Array.from({ length: room }, (_, at) => passwords.hash(`p${at}`));
    const refused: unknown = await passwords.hash("late").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DomainError);
    expect(refused).toMatchObject({ code: "unavailable" });
    expect((await endAll(asked)).every(({ status }) => status === "fulfilled")).toBe(true);
    expect(seen.begun).not.toContain("late");
    await endAll([passwords.hash("later")]);
    expect(seen.begun).toContain("later");
  });

  test("that fail give their turn on", async () => {
    const { endAll } = slowHashes();
    const passwords = createPasswords();
    const settled = await endAll(Array.from({ length: 9 }, () => passwords.hash("broken")));
    expect(settled.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => "rejected" as const));
    const [last] = await endAll([passwords.hash("sound")]);
    expect(last).toEqual({ status: "fulfilled", value: "hash of sound" });
  });
});
