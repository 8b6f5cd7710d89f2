import type { Passwords } from "../ports/passwords.ts";
import { createTurns } from "./turns.ts";

/** What one hash costs. */
export interface PasswordCost {
  readonly memoryKib: number;
  readonly passes: number;
}

/** Bun's own measure: 0.1 s. OWASP asks for 19 MiB and two passes at least. */
const COST: PasswordCost = { memoryKib: 65_536, passes: 2 };

/**
 * Argon2id by Bun, two at a time whatever comes: ten at once would take 640 MiB, and every core from the deliveries.
 * Others wait for their turn (`turns.ts`).
 */
export function createPasswords({ memoryKib, passes }: PasswordCost = COST): Passwords {
  const inTurn = createTurns();
  const nobodys = hashOfNobody({ memoryKib, passes });
  return {
    hash: (password, turn) =>
      inTurn(turn, () =>
        Bun.password.hash(asTyped(password), { algorithm: "argon2id", memoryCost: memoryKib, timeCost: passes }),
      ),
    verify: (password, hash, turn) => inTurn(turn, () => Bun.password.verify(asTyped(password), hash ?? nobodys)),
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
