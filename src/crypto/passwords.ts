import type { Passwords, Turn } from "./types.ts";
import { DomainError } from "../api/domain-error.ts";
import {
  PASSWORD_HASHES_MAX,
  PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX,
  PASSWORD_HASHES_WAITING_MAX,
  PASSWORD_HASHES_WAITING_PER_LANE_MAX,
} from "../config/limits.ts";

/** What one hash costs. */
interface PasswordCost {
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

interface Waiting {
  readonly begin: () => void;
  readonly giveUp: (error: DomainError) => void;
}

/** What waits, by lane. The lane that is first in the map is served next. */
interface Line {
  readonly lanes: Map<string, Waiting[]>;
  length: number;
}

/**
 * Runs so much work at a time. Each lane gets its turn after the others', and two of three turns are for known devices
 * while both kinds wait: whoever fills their own lane waits the longer, and keeps nobody else waiting. Throws `unavailable`
 * where a lane or the whole line is full; a newcomer takes the last place of whoever holds the most of them.
 */
function createTurns(): <T>(turn: Turn, work: () => Promise<T>) => Promise<T> {
  const known: Line = { lanes: new Map(), length: 0 };
  const others: Line = { lanes: new Map(), length: 0 };
  let running = 0;
  let knownInARow = 0;

  const next = (): Waiting | undefined => {
    const isTurnOfKnown = others.length === 0 || knownInARow < PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX;
    const isKnown = known.length > 0 && isTurnOfKnown;
    knownInARow = isKnown ? knownInARow + 1 : 0;
    return takeFirst(isKnown ? known : others);
  };

  return async ({ lane, isKnown }, work) => {
    if (running < PASSWORD_HASHES_MAX) running += 1;
    // Whoever is done hands its turn over, so that nobody slips in between.
    else await joinLine(isKnown ? known : others, lane);
    try {
      return await work();
    } finally {
      const first = next();
      if (first === undefined) running -= 1;
      else first.begin();
    }
  };
}

function joinLine(line: Line, lane: string): Promise<void> {
  const mine = line.lanes.get(lane) ?? [];
  if (mine.length >= PASSWORD_HASHES_WAITING_PER_LANE_MAX) return Promise.reject(tooMany());
  if (line.length >= PASSWORD_HASHES_WAITING_MAX && !makeRoom(line, mine.length + 1)) return Promise.reject(tooMany());
  return new Promise((begin, giveUp) => {
    mine.push({ begin, giveUp });
    line.lanes.set(lane, mine);
    line.length += 1;
  });
}

/** Gives up the newest of the longest lane, unless no lane is longer than this. */
function makeRoom(line: Line, length: number): boolean {
  const [longest] = [...line.lanes].toSorted(([, one], [, other]) => other.length - one.length);
  if (longest === undefined || longest[1].length <= length) return false;
  longest[1].pop()?.giveUp(tooMany());
  line.length -= 1;
  return true;
}

function takeFirst(line: Line): Waiting | undefined {
  for (const [name, lane] of line.lanes) {
    line.lanes.delete(name);
    const first = lane.shift();
    // Behind all others, until its next turn.
    if (lane.length > 0) line.lanes.set(name, lane);
    if (first !== undefined) line.length -= 1;
    return first;
  }
  return undefined;
}

function tooMany(): DomainError {
  return new DomainError("unavailable", "Too many people log in or sign up just now; try again in a few seconds.");
}
