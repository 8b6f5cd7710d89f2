import {
  ADDRESSES_TRIED_MAX,
  DNS_TIMEOUT_MS,
  CONNECTABLE_FRESH_MS,
  CONNECTABLE_REMEMBERED_MAX,
} from "../core/limits.ts";
import type { NotSent } from "../core/outcome.ts";
import { afterReading, type Stopped, type Deadline } from "./deadline.ts";
import { type Address, parseAddress, urlHostOf } from "../core/addresses.ts";
import {
  isOwnTarget,
  isOwnTest,
  checkAddress,
  checkName,
  loopbackAddresses,
  type TargetPolicy,
  type TargetVerdict,
} from "../config/target-policy.ts";
import { classOfName, type ParsedTarget } from "../core/target.ts";
import { connect } from "node:net";

/** The addresses to try for a target, in order, all of them checked; or why there are none. */
export async function addressesOf(
  policy: TargetPolicy,
  target: ParsedTarget,
  deadline: Deadline,
): Promise<readonly Address[] | NotSent | Stopped> {
  const { literal, hostname } = target;
  if (literal !== null) return checked(policy, target, [literal], null);
  const verdict = checkName(policy, hostname);
  if (verdict === "never" || (verdict === "private" && !isOwnTest(policy, target))) return REFUSED[verdict];
  if (classOfName(hostname) === "loopback") {
    return checked(policy, target, loopbackAddresses(policy, hostname), hostname);
  }
  const found = await lookUp(hostname, deadline);
  return "kind" in found ? found : checked(policy, target, found, hostname);
}

/** One forbidden address refuses the whole host: whoever controls the name chose it. */
function checked(
  policy: TargetPolicy,
  target: ParsedTarget,
  addresses: readonly (Address | null)[],
  name: string | null,
): readonly Address[] | NotSent {
  const allowed: Address[] = [];
  let worst: TargetVerdict = "allowed";
  for (const address of addresses) {
    const verdict = address === null ? "never" : checkAddress(policy, address, name);
    if (verdict === "never" || isOwnTarget(policy.own, target, address)) return REFUSED.never;
    if (verdict === "private" && !isOwnTest(policy, target)) worst = "private";
    else if (address !== null) allowed.push(address);
  }
  if (worst === "private") return REFUSED.private;
  return allowed.length === 0 ? NOT_RESOLVED : allowed.slice(0, ADDRESSES_TRIED_MAX);
}

/**
 * Asks DNS through c-ares: the system's resolver has one thread per core, shared with file reads and password hashing,
 * so that 40 names on a slow server blocked everything else for 4 s. A lookup can't be aborted; a late answer is
 * dropped.
 */
function lookUp(hostname: string, deadline: Deadline): Promise<readonly (Address | null)[] | NotSent | Stopped> {
  const { promise, resolve } = Promise.withResolvers<readonly (Address | null)[] | NotSent | Stopped>();
  const giveUp = () => resolve(NOT_RESOLVED);
  const onAbort = () => resolve(deadline.endedBy() === "interrupted" ? STOPPED : TIMED_OUT);
  const cancel = afterReading(DNS_TIMEOUT_MS, giveUp);
  deadline.signal.addEventListener("abort", onAbort);
  Bun.dns
    .lookup(hostname, { backend: "c-ares" })
    .then((answers) => resolve(answers.map((answer) => parseAddress(answer.address))), giveUp);
  return promise.finally(() => {
    cancel();
    deadline.signal.removeEventListener("abort", onAbort);
  });
}

const NOT_RESOLVED: NotSent = { kind: "not_sent", fault: "name_not_resolved" };

const TIMED_OUT: NotSent = { kind: "not_sent", fault: "timed_out" };

export const STOPPED: Stopped = { kind: "stopped" };

const REFUSED = {
  never: { kind: "not_sent", fault: "address_never" },
  private: { kind: "not_sent", fault: "address_private" },
} as const satisfies Record<Exclude<TargetVerdict, "allowed">, NotSent>;

interface ProbeLimits {
  readonly limitMs: number;
  /** Ends the probe early; then the address counts as silent. */
  readonly signal: AbortSignal;
}

/**
 * Tells a silent address from one that accepts or refuses connections, before a request is sent. Without this, a call
 * that ends without an answer may have connected and must count as sent: also where a name has one address, since Bun
 * ends both alike. With https `tls.checkServerIdentity` is called before anything is written, but it takes the place of the
 * check of the name in the certificate.
 */
export class ConnectionProbe {
  readonly #nowMs: () => number;
  readonly #probe: typeof isSilent;
  /** Time of the last answer by address and port, oldest first. */
  readonly #answeredAtMs = new Map<string, number>();

  constructor(nowMs: () => number = () => performance.now(), probe = isSilent) {
    this.#nowMs = nowMs;
    this.#probe = probe;
  }

  /** Whether the address does not answer. One that answered a call recently is not probed again. Never rejects. */
  async isSilent(address: Address, port: number, limits: ProbeLimits): Promise<boolean> {
    const answeredMs = this.#answeredAtMs.get(nameOf(address, port)) ?? Number.NEGATIVE_INFINITY;
    return this.#nowMs() - answeredMs >= CONNECTABLE_FRESH_MS && this.#probe(address, port, limits);
  }

  /** Records how a call to the address ended. */
  learn(address: Address, port: number, isAnswered: boolean): void {
    const name = nameOf(address, port);
    this.#answeredAtMs.delete(name);
    if (!isAnswered) return;
    this.#answeredAtMs.set(name, this.#nowMs());
    const [oldest] = this.#answeredAtMs.keys();
    if (this.#answeredAtMs.size > CONNECTABLE_REMEMBERED_MAX && oldest !== undefined) this.#answeredAtMs.delete(oldest);
  }
}

/**
 * Opens a connection, sends nothing and closes it. The call itself finds out why one fails: Bun reports ECONNREFUSED
 * for any failure here. Not `Bun.connect`: a connection that does not come about can't be ended there and stays for two
 * minutes.
 */
function isSilent(address: Address, port: number, { limitMs, signal }: ProbeLimits): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address.toString(), port });
  const giveUp = () => resolve(true);
  const onAnswer = () => resolve(false);
  const cancel = afterReading(limitMs, giveUp);
  signal.addEventListener("abort", giveUp);
  // Listeners stay: an error without a listener would throw.
  socket.on("connect", onAnswer).on("error", onAnswer).on("close", onAnswer);
  if (signal.aborted) giveUp();
  return promise.finally(() => {
    cancel();
    signal.removeEventListener("abort", giveUp);
    socket.destroy();
  });
}

function nameOf(address: Address, port: number): string {
  return `${urlHostOf(address)}:${port}`;
}
