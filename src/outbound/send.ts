import { CONNECT_TIMEOUT_MS, LOCATION_CHARS_MAX } from "../core/limits.ts";
import type { Answered, NotSent, Outcome } from "../core/outcome.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { type ConnectionState, Connections, poolOf } from "./connections.ts";
import {
  type AnswerMask,
  type OutboundRequest,
  type Sender,
  type SendLimits,
  type Stopped,
  type Deadline,
  openDeadline,
} from "./deadline.ts";
import { urlHostOf } from "../core/addresses.ts";
import { addressesOf, ConnectionProbe, STOPPED } from "./resolve.ts";
import {
  isUnconnected,
  maskedJson,
  NOT_HTTP,
  outcomeOf,
  REFUSED,
  UNREACHABLE,
  closeBody,
  readBody,
  responseJson,
  saysItCloses,
} from "./response.ts";
import { reachedTarget, type TargetPolicy } from "../config/target-policy.ts";
import { keptHeaders } from "../receipts/response-headers.ts";
import { type ParsedTarget, parseTarget } from "../core/target.ts";

interface SenderOptions {
  /** PEM of the only certificate authority to trust, in place of the system's: for a private network, or a test. */
  readonly ca?: string | undefined;
  readonly clock?: Pick<Clock, "monotonicMs" | "after">;
  /** False: each call has a connection of its own. */
  readonly keepsConnections?: boolean;
}

/** One that leaves connections open. */
interface OpenSender extends Sender {
  /** Closes the connections that no call uses, and leaves none open from now on. */
  close(): void;
}

/**
 * Makes calls under the policy. Each call is checked again, by every resolved address, and goes to the first that
 * accepts connections. Only a POST or PATCH may go over the connection of an earlier call: when such a connection ends,
 * Bun repeats GET, PUT and DELETE by itself.
 */
export function createSender(policy: TargetPolicy, options: SenderOptions = {}): OpenSender {
  const { ca, clock = systemClock, keepsConnections = true } = options;
  const connections = new Connections(clock);
  const probe = new ConnectionProbe(() => clock.monotonicMs());

  const sendOnce = async (
    request: OutboundRequest,
    deadline: Deadline,
    { keepFor = null, mayBegin = () => true, complete }: Pick<SendLimits, "keepFor" | "mayBegin" | "complete">,
  ): Promise<Outcome | Stopped> => {
    if (deadline.endedBy() === "interrupted") return STOPPED;
    const named = parseTarget(request.url);
    if ("refused" in named) return NOT_ALLOWED;
    const target = reachedTarget(policy, named);
    const addresses = await addressesOf(policy, target, deadline);
    if ("kind" in addresses) return addresses;
    const routes = addresses.map((address) => ({
      address,
      pool: keepFor === null ? null : poolOf(keepFor, target, address),
    }));
    const isOpen = ({ pool }: (typeof routes)[number]) => connections.hasIdle(pool);
    let isRefusedByAll = true;
    // All of them were checked just now. One with an open connection comes first: it answered a moment ago.
    for (const [at, route] of routes.toSorted((a, b) => Number(isOpen(b)) - Number(isOpen(a))).entries()) {
      const { address, pool } = route;
      // Each address gets a share of the remaining time, so that a silent one leads on to the next even with a short
      // deadline.
      const limitMs = Math.min(CONNECT_TIMEOUT_MS, deadline.leftMs() / (addresses.length - at));
      const limits = { limitMs, signal: deadline.signal };
      const isSilent = !isOpen(route) && (await probe.isSilent(address, target.port, limits));
      // No connection carried the request yet: nothing has left.
      if (deadline.endedBy() === "interrupted") return STOPPED;
      if (deadline.endedBy() === "timed_out") return UNREACHABLE;
      const completed =
        isSilent || complete === undefined ? null : await complete({ isHttps: target.isHttps, address });
      if (completed !== null && "kind" in completed) return completed;
      if (completed !== null && deadline.endedBy() === "interrupted") return STOPPED;
      if (!isSilent && !mayBegin()) return STOPPED;
      const callOnce = async () => {
        const connection = connections.take(pool);
        const whole = completed === null ? request : { ...request, headers: completed.headers };
        const init = initOf(whole, target, { ca, signal: deadline.signal, isKept: connection.pool !== null });
        // The checked address in place of the name: Bun must never resolve anything itself.
        const scheme = target.isHttps ? "https" : "http";
        const url = `${scheme}://${urlHostOf(address)}:${target.port}${target.rest}`;
        const send = () => connection.session.fetch(url, init);
        const called = await call(send, deadline, completed?.mask ?? null);
        connections.release(connection, called.state);
        return called.outcome;
      };
      const outcome = isSilent ? UNREACHABLE : await callOnce();
      probe.learn(address, target.port, outcome.kind === "answered");
      if (!isUnconnected(outcome)) return outcome;
      isRefusedByAll &&= outcome === REFUSED;
    }
    return isRefusedByAll ? REFUSED : UNREACHABLE;
  };

  return {
    async send(request, limits) {
      const deadline = openDeadline(limits);
      const mayKeep = keepsConnections && (request.method === "POST" || request.method === "PATCH");
      try {
        return await sendOnce(request, deadline, mayKeep ? limits : { ...limits, keepFor: null });
      } finally {
        deadline.close();
      }
    },
    close: () => connections.close(),
  };
}

function initOf(
  { method, headers, body }: OutboundRequest,
  { isHttps, host, hostname, literal }: ParsedTarget,
  { ca, signal, isKept }: { readonly ca: string | undefined; readonly signal: AbortSignal; readonly isKept: boolean },
): BunFetchRequestInit {
  const init: BunFetchRequestInit = {
    method,
    headers: [...headers.map(([name, value]) => [name, value]), ["Host", host], ...(isKept ? KEPT_FRAMING : FRAMING)],
    body,
    redirect: "manual",
    // A compression bomb of 405 bytes would become 445 MB.
    decompress: false,
    // Set on every call: otherwise Bun reads the proxy from the environment.
    proxy: false,
    signal,
  };
  if (isHttps) {
    // The certificate is checked against the name in the URL, although an address is connected to.
    const serverName = literal === null ? { serverName: hostname } : {};
    init.tls = { rejectUnauthorized: true, ...serverName, ...(ca === undefined ? {} : { ca }) };
  }
  return init;
}

/** How a call ended, and what that means for its connection. */
interface Called {
  readonly outcome: Outcome;
  readonly state: ConnectionState;
}

async function call(fetchOnce: () => Promise<Response>, deadline: Deadline, mask: AnswerMask | null): Promise<Called> {
  let response: Response;
  try {
    response = await fetchOnce();
  } catch (error) {
    const outcome = outcomeOf(error, deadline.endedBy());
    const isOurs = deadline.endedBy() !== null || outcome.kind === "not_sent";
    return { outcome, state: isOurs ? "unfit" : "lost" };
  }
  return answerOf(response, deadline, mask);
}

/** From here on the outcome is `answered`, whatever happens to the body. What may not be shown is masked before anything is cut. */
async function answerOf(response: Response, deadline: Deadline, mask: AnswerMask | null): Promise<Called> {
  const { status, headers } = response;
  if (status < 200 || status > 599) {
    await closeBody(response.body);
    return { outcome: NOT_HTTP, state: "lost" };
  }
  const { bytes, truncated, isBroken } = await readBody(response.body);
  const broken = deadline.endedBy() === "timed_out" ? "timed_out" : "closed";
  const ofHeader = async (name: string, charsMax: number) => {
    const value = headers.get(name);
    if (value === null) return null;
    return (mask === null ? value : await mask.maskStart(value, charsMax)).slice(0, charsMax);
  };
  const outcome: Answered = {
    kind: "answered",
    code: status,
    body: mask === null ? responseJson(bytes, truncated) : await maskedJson(bytes, truncated, headers, mask),
    headers: await keptHeaders(headers, mask),
    truncated,
    brokenBy: isBroken ? broken : null,
    retryAfter: await ofHeader("retry-after", RETRY_AFTER_CHARS_MAX),
    location: await ofHeader("location", LOCATION_CHARS_MAX),
  };
  return { outcome, state: truncated || saysItCloses(headers) ? "unfit" : "open" };
}

const NOT_ALLOWED: NotSent = { kind: "not_sent", fault: "address_never" };

/** Longer than any date. A longer number is beyond every limit even when cut. */
const RETRY_AFTER_CHARS_MAX = 64;

const KEPT_FRAMING: readonly string[][] = [["Accept-Encoding", "identity"]];

/**
 * A client that does not keep connections sends `close` (RFC 9112, 9.3). The target then closes first, which keeps our
 * ports out of TIME_WAIT.
 */
const FRAMING: readonly string[][] = [...KEPT_FRAMING, ["Connection", "close"]];
