import { ADDRESSES_TRIED_MAX, DNS_TIMEOUT_MS } from "../domain/limits.ts";
import type { NotSent } from "../domain/outcome.ts";
import type { Stopped } from "../ports/sender.ts";
import { type Address, parseAddress } from "./address.ts";
import { classOfName } from "./host-name.ts";
import { isOwnTarget } from "./own-origin.ts";
import { checkAddress, checkName, loopbackAddresses, type TargetPolicy, type Verdict } from "./policy.ts";
import type { Deadline } from "./deadline.ts";
import type { ParsedTarget } from "./target.ts";

/** The addresses that may be dialled for a target, all of them judged, in order; or why there are none. */
export async function addressesOf(
  policy: TargetPolicy,
  target: ParsedTarget,
  deadline: Deadline,
): Promise<readonly Address[] | NotSent | Stopped> {
  const { literal, hostname } = target;
  if (literal !== null) return checked(policy, target, [literal], null);
  const verdict = checkName(policy, hostname);
  if (verdict !== "allowed") return REFUSED[verdict];
  if (classOfName(hostname) === "loopback") {
    return checked(policy, target, loopbackAddresses(policy, hostname), hostname);
  }
  const found = await lookUp(hostname, deadline);
  return isFound(found) ? checked(policy, target, found, hostname) : found;
}

/** One that is not allowed refuses the host: whoever answers for the name chose it (hostile 3). */
function checked(
  policy: TargetPolicy,
  target: ParsedTarget,
  addresses: readonly (Address | null)[],
  name: string | null,
): readonly Address[] | NotSent {
  const allowed: Address[] = [];
  let worst: Verdict = "allowed";
  for (const address of addresses) {
    const verdict = address === null ? "never" : checkAddress(policy, address, name);
    if (verdict === "never" || isOwnTarget(policy.own, target, address)) return REFUSED.never;
    if (verdict === "private") worst = "private";
    else if (address !== null) allowed.push(address);
  }
  if (worst === "private") return REFUSED.private;
  return allowed.length === 0 ? NOT_RESOLVED : allowed.slice(0, ADDRESSES_TRIED_MAX);
}

/**
 * Asks DNS through c-ares: the system's resolver has one thread per core, shared with file reads and password hashing,
 * so that 40 names on a slow server held up everything else for 4 s. It can't be aborted; a late answer is dropped.
 */
function lookUp(hostname: string, deadline: Deadline): Promise<readonly (Address | null)[] | NotSent | Stopped> {
  const { promise, resolve } = Promise.withResolvers<readonly (Address | null)[] | NotSent | Stopped>();
  const giveUp = () => resolve(NOT_RESOLVED);
  const cut = () => resolve(deadline.cut() === "interrupted" ? STOPPED : TIMED_OUT);
  const timer = setTimeout(giveUp, DNS_TIMEOUT_MS);
  deadline.signal.addEventListener("abort", cut);
  Bun.dns
    .lookup(hostname, { backend: "c-ares" })
    .then((answers) => resolve(answers.map((answer) => parseAddress(answer.address))), giveUp);
  return promise.finally(() => {
    clearTimeout(timer);
    deadline.signal.removeEventListener("abort", cut);
  });
}

function isFound<T extends readonly unknown[]>(found: T | NotSent | Stopped): found is T {
  return Array.isArray(found);
}

const NOT_RESOLVED: NotSent = { kind: "not_sent", fault: "name_not_resolved" };
const TIMED_OUT: NotSent = { kind: "not_sent", fault: "timed_out" };
const STOPPED: Stopped = { kind: "stopped" };

const REFUSED = {
  never: { kind: "not_sent", fault: "address_never" },
  private: { kind: "not_sent", fault: "address_private" },
} as const satisfies Record<Exclude<Verdict, "allowed">, NotSent>;
