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

/** Bun's default, about 0.1 s. OWASP recommends at least 19 MiB and two passes. */
const COST: PasswordCost = { memoryKib: 65_536, passes: 2 };

/**
 * Argon2id by Bun, at most `PASSWORD_HASHES_MAX` at a time: ten would take 640 MiB and all cores. Others wait in a fair queue.
 */
export function createPasswords({ memoryKib, passes }: PasswordCost = COST) {
  const inTurn = createTurns();
  const dummyHash = createDummyHash({ memoryKib, passes });
  return {
    /** Argon2id, in the PHC string format. */
    hash: (password: string, turn: HashLane) =>
      inTurn(turn, () =>
        Bun.password.hash(normalize(password), { algorithm: "argon2id", memoryCost: memoryKib, timeCost: passes }),
      ),
    /** Whether the password has this hash. Null (unknown person): false, after the same time. */
    verify: (password: string, hash: string | null, turn: HashLane) =>
      inTurn(turn, () => Bun.password.verify(normalize(password), hash ?? dummyHash)),
  };
}

/** Hashes passwords. Both methods throw `unavailable` if too many calls wait. */
export type Passwords = ReturnType<typeof createPasswords>;

/** The queue in which a password waits to be hashed. */
export interface HashLane {
  /** Calls of one lane run in order; lanes take turns. */
  readonly lane: string;
  /** The device, session or link is known, which gets more turns. */
  readonly isKnown: boolean;
}

/** Systems produce different code points for the same typed text (NIST SP 800-63B, 5.1.1.2). */
function normalize(password: string): string {
  return password.normalize("NFKC");
}

/** A hash without a known password, of the same cost as real ones, so that verifying an unknown person takes as long. */
function createDummyHash({ memoryKib, passes }: PasswordCost): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$${base64("s".repeat(32))}$${base64("h".repeat(32))}`;
}

interface Waiting {
  readonly begin: () => void;
  readonly giveUp: (error: DomainError) => void;
}

/** The waiting calls by lane. The first lane of the map is served next. */
interface Line {
  readonly lanes: Map<string, Waiting[]>;
  length: number;
}

/**
 * Runs at most `PASSWORD_HASHES_MAX` calls at a time. Lanes take turns, and while both kinds wait, two of three turns go to
 * known devices, so that a client who fills its own lane delays only itself. Throws `unavailable` if the lane or the whole
 * queue is full; in a full queue a newcomer takes a place of the longest lane.
 */
function createTurns(): <T>(turn: HashLane, work: () => Promise<T>) => Promise<T> {
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
    // A finished call passes its slot to the next waiting one, so that no newcomer overtakes the queue.
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
  const waiting = line.lanes.get(lane) ?? [];
  if (waiting.length >= PASSWORD_HASHES_WAITING_PER_LANE_MAX) return Promise.reject(tooMany());
  if (line.length >= PASSWORD_HASHES_WAITING_MAX && !makeRoom(line, waiting.length + 1))
    return Promise.reject(tooMany());
  return new Promise((begin, giveUp) => {
    waiting.push({ begin, giveUp });
    line.lanes.set(lane, waiting);
    line.length += 1;
  });
}

/** Refuses the newest call of the longest lane; false: no lane is longer than `length`. */
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
    // Its next turn comes after all other lanes.
    if (lane.length > 0) line.lanes.set(name, lane);
    if (first !== undefined) line.length -= 1;
    return first;
  }
  return undefined;
}

function tooMany(): DomainError {
  return new DomainError(
    "unavailable",
    "Too many people are logging in or signing up right now. Try again in a few seconds.",
  );
}
