import { DomainError, RetryLater } from "../core/domain-error.ts";
import {
  PASSWORD_HASH_CLIENTS_COUNTED_MAX,
  PASSWORD_HASHES_MAX,
  PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX,
  PASSWORD_HASHES_WAITING_MAX,
  PASSWORD_HASHES_WAITING_PER_LANE_MAX,
} from "../core/limits.ts";

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

/** Hashes passwords. Both methods throw `unavailable` if too many calls wait, `RetryLater` if one with its address does. */
export type Passwords = ReturnType<typeof createPasswords>;

/** The queue in which a password waits to be hashed. */
export interface HashLane {
  /** Calls of one lane run in order; lanes take turns. */
  readonly lane: string;
  /** The device, session or link is known, which gets more turns. */
  readonly isKnown: boolean;
  /** The address that a stranger submitted, in lower case, even if nobody has it; null: it is no stranger. */
  readonly email: string | null;
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

/** A place in the queue. A call that takes it over from another one changes it. */
interface Place {
  readonly submitted: Submitted | null;
  client: string;
  begin: () => void;
  giveUp: (error: DomainError) => void;
}

/** The waiting calls by lane. The first lane of the map is served next. */
interface Line {
  readonly lanes: Map<string, Place[]>;
  length: number;
}

/** An address that strangers submit, while any call with it runs or waits. */
interface Submitted {
  calls: number;
  /** How often each client has asked meanwhile. */
  readonly tries: Map<string, number>;
  place: Place | null;
}

/**
 * Runs at most `PASSWORD_HASHES_MAX` calls at a time. Lanes take turns, and while both kinds wait, two of three turns go to
 * known devices. So a client who fills its own lane delays only itself. Throws `unavailable` if the lane or the whole queue is
 * full; in a full queue, a newcomer takes a place of the longest lane. Only one stranger waits per address, and others get
 * `RetryLater`: otherwise, many networks could keep everybody else waiting.
 */
function createTurns(): <T>(turn: HashLane, work: () => Promise<T>) => Promise<T> {
  const known: Line = { lanes: new Map(), length: 0 };
  const others: Line = { lanes: new Map(), length: 0 };
  const addresses = new Map<string, Submitted>();
  let running = 0;
  let knownInARow = 0;

  const next = (): Place | undefined => {
    const isTurnOfKnown = others.length === 0 || knownInARow < PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX;
    const isKnown = known.length > 0 && isTurnOfKnown;
    knownInARow = isKnown ? knownInARow + 1 : 0;
    return takeFirst(isKnown ? known : others);
  };

  const run = async <T>(
    { lane, isKnown }: HashLane,
    submitted: Submitted | null,
    work: () => Promise<T>,
  ): Promise<T> => {
    if (running < PASSWORD_HASHES_MAX) running += 1;
    // A finished call passes its slot to the next waiting one, so that no newcomer overtakes the queue.
    else await joinLine(isKnown ? known : others, lane, submitted);
    try {
      return await work();
    } finally {
      const first = next();
      if (first === undefined) running -= 1;
      else first.begin();
    }
  };

  return async (turn, work) => {
    const { email, lane } = turn;
    if (email === null) return run(turn, null, work);
    const submitted = addresses.get(email) ?? { calls: 0, tries: new Map<string, number>(), place: null };
    addresses.set(email, submitted);
    submitted.calls += 1;
    countTry(submitted, lane);
    try {
      return await run(turn, submitted, work);
    } finally {
      submitted.calls -= 1;
      if (submitted.calls === 0) addresses.delete(email);
    }
  };
}

function countTry({ tries }: Submitted, client: string): void {
  if (tries.has(client) || tries.size < PASSWORD_HASH_CLIENTS_COUNTED_MAX)
    tries.set(client, countTries(tries, client) + 1);
}

function countTries(tries: ReadonlyMap<string, number>, client: string): number {
  return tries.get(client) ?? 0;
}

function joinLine(line: Line, lane: string, submitted: Submitted | null): Promise<void> {
  const taken = submitted?.place ?? null;
  if (taken !== null) return takeOver(taken, lane);
  const waiting = line.lanes.get(lane) ?? [];
  if (waiting.length >= PASSWORD_HASHES_WAITING_PER_LANE_MAX) return Promise.reject(tooMany());
  if (line.length >= PASSWORD_HASHES_WAITING_MAX && !makeRoom(line, waiting.length + 1))
    return Promise.reject(tooMany());
  return new Promise((begin, giveUp) => {
    const place: Place = { submitted, client: lane, begin, giveUp };
    waiting.push(place);
    line.lanes.set(lane, waiting);
    line.length += 1;
    if (submitted !== null) submitted.place = place;
  });
}

/**
 * Of two clients with one address, the one that has asked less often waits; if both have asked equally often, the later one. So
 * the owner of an address gets a turn even if many others guess its password.
 */
function takeOver(place: Place, client: string): Promise<void> {
  const tries = place.submitted?.tries ?? new Map<string, number>();
  if (countTries(tries, client) > countTries(tries, place.client)) return Promise.reject(oneAtATime());
  place.giveUp(oneAtATime());
  return new Promise((begin, giveUp) => void Object.assign(place, { client, begin, giveUp }));
}

/** Refuses the newest call of the longest lane; false: no lane is longer than `length`. */
function makeRoom(line: Line, length: number): boolean {
  const [longest] = [...line.lanes].toSorted(([, one], [, other]) => other.length - one.length);
  if (longest === undefined || longest[1].length <= length) return false;
  left(line, longest[1].pop())?.giveUp(tooMany());
  return true;
}

function takeFirst(line: Line): Place | undefined {
  for (const [name, lane] of line.lanes) {
    line.lanes.delete(name);
    const first = lane.shift();
    // Its next turn comes after all other lanes.
    if (lane.length > 0) line.lanes.set(name, lane);
    return left(line, first);
  }
  return undefined;
}

/** Counts a place that has left its lane. */
function left(line: Line, place: Place | undefined): Place | undefined {
  if (place === undefined) return undefined;
  line.length -= 1;
  if (place.submitted !== null) place.submitted.place = null;
  return place;
}

/** The same error whether or not somebody has the address. */
function oneAtATime(): RetryLater {
  return new RetryLater("Others are trying this address right now. Try again in 1 s.", 1);
}

function tooMany(): DomainError {
  return new DomainError(
    "unavailable",
    "Too many people are logging in or signing up right now. Try again in a few seconds.",
  );
}
