import { DomainError } from "../domain/errors.ts";
import { PASSWORD_HASHES_MAX, PASSWORD_HASHES_WAITING_MAX } from "../domain/limits.ts";
import type { Passwords } from "../ports/passwords.ts";

/** What one hash costs. */
export interface PasswordCost {
  readonly memoryKib: number;
  readonly passes: number;
}

/** Bun's own measure: 0.1 s. OWASP asks for 19 MiB and two passes at least. */
const COST: PasswordCost = { memoryKib: 65_536, passes: 2 };

/**
 * Argon2id by Bun, two at a time whatever comes: ten at once would take 640 MiB, and every core from the deliveries.
 * Others wait in line for their turn; where the line is full they are told to come back.
 */
export function createPasswords({ memoryKib, passes }: PasswordCost = COST): Passwords {
  const inTurn = createLine();
  const nobodys = hashOfNobody({ memoryKib, passes });
  return {
    hash: (password) =>
      inTurn(() =>
        Bun.password.hash(asTyped(password), { algorithm: "argon2id", memoryCost: memoryKib, timeCost: passes }),
      ),
    verify: (password, hash) => inTurn(() => Bun.password.verify(asTyped(password), hash ?? nobodys)),
  };
}

/** The same keys give other code points on other systems (NIST SP 800-63B, 5.1.1.2). */
function asTyped(password: string): string {
  return password.normalize("NFKC");
}

/** Of the cost of the real ones, so that it takes their time; nobody knows a password for it. */
function hashOfNobody({ memoryKib, passes }: PasswordCost): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$${base64("s".repeat(32))}$${base64("h".repeat(32))}`;
}

/** Runs so much work at a time, first come first served. */
function createLine(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < PASSWORD_HASHES_MAX) running += 1;
    else {
      if (waiting.length >= PASSWORD_HASHES_WAITING_MAX) throw tooMany();
      // Whoever is done hands its turn over, so that nobody slips in between.
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

function tooMany(): DomainError {
  return new DomainError("unavailable", "Too many people log in or sign up just now; try again in a few seconds.");
}
