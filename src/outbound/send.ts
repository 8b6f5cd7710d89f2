import { CONNECT_TIMEOUT_MS, LOCATION_CHARS_MAX } from "../config/limits.ts";
import type { Answered, NotSent, Outcome, Unknown } from "../actions/outcome.ts";
import { type OutboundRequest, type Sender, type Stopped, type Deadline, openDeadline } from "./deadline.ts";
import { type Address, hostOf } from "./addresses.ts";
import { type Connectable, createConnectable, addressesOf } from "./resolve.ts";
import { isUnconnected, outcomeOf, REFUSED, UNREACHABLE, closeBody, readBody, responseJson } from "./response.ts";
import type { TargetPolicy } from "./policy.ts";
import { type ParsedTarget, parseTarget } from "./target.ts";

interface SenderOptions {
  /** PEM of the only certificate authority to trust, in place of the system's: for a private network, or a test. */
  readonly ca?: string;
}

/**
 * Makes calls under the policy. Each call is checked again, by every resolved address, and goes to the first that
 * accepts connections. Each has a connection of its own: on a kept one Bun repeats GET, PUT and DELETE by itself, and
 * can take one target's stray response for another's.
 */
export function createSender(policy: TargetPolicy, options: SenderOptions = {}): Sender {
  const session = new Bun.FetchSession({ keepAlive: false });
  const transport: Transport = { fetch: session.fetch, ca: options.ca, connectable: createConnectable() };
  return {
    async send(request, limits) {
      const deadline = openDeadline(limits);
      try {
        return await sendOnce(policy, transport, request, deadline);
      } finally {
        deadline.close();
      }
    },
  };
}

/** What all calls of a sender share. */
interface Transport {
  readonly fetch: Bun.FetchSession["fetch"];
  readonly ca: string | undefined;
  readonly connectable: Connectable;
}

async function sendOnce(
  policy: TargetPolicy,
  transport: Transport,
  request: OutboundRequest,
  deadline: Deadline,
): Promise<Outcome | Stopped> {
  if (deadline.cut() === "interrupted") return STOPPED;
  const target = parseTarget(request.url);
  if ("refused" in target) return NOT_ALLOWED;
  const addresses = await addressesOf(policy, target, deadline);
  if ("kind" in addresses) return addresses;
  const init = initOf(transport, request, target, deadline);
  let isRefusedByAll = true;
  for (const [at, address] of addresses.entries()) {
    // Each address gets a share of the remaining time, so that a silent one leads on to the next even with a short
    // deadline.
    const limitMs = Math.min(CONNECT_TIMEOUT_MS, deadline.leftMs() / (addresses.length - at));
    const isSilent = await transport.connectable.isSilent(address, target.port, { limitMs, signal: deadline.signal });
    // No connection carried the request yet: nothing has left.
    if (deadline.cut() === "interrupted") return STOPPED;
    if (deadline.cut() === "timed_out") return UNREACHABLE;
    const outcome = isSilent ? UNREACHABLE : await callAddress(transport, urlAt(target, address), init, deadline);
    transport.connectable.learn(address, target.port, outcome.kind === "answered");
    if (!isUnconnected(outcome)) return outcome;
    isRefusedByAll &&= outcome === REFUSED;
  }
  return isRefusedByAll ? REFUSED : UNREACHABLE;
}

/** The checked address in place of the name: Bun must never resolve anything itself. */
function urlAt({ isHttps, port, rest }: ParsedTarget, address: Address): string {
  return `${isHttps ? "https" : "http"}://${hostOf(address)}:${port}${rest}`;
}

function initOf(
  transport: Transport,
  { method, headers, body }: OutboundRequest,
  target: ParsedTarget,
  deadline: Deadline,
): BunFetchRequestInit {
  const init: BunFetchRequestInit = {
    method,
    headers: [...headers.map(([name, value]) => [name, value]), ["Host", target.host], ...FRAMING],
    body,
    redirect: "manual",
    // A compression bomb of 405 bytes would become 445 MB.
    decompress: false,
    // Set on every call: otherwise Bun reads the proxy from the environment.
    proxy: false,
    signal: deadline.signal,
  };
  if (target.isHttps) init.tls = tlsOf(transport, target);
  return init;
}

/** The certificate is checked against the name in the URL, although an address is connected to. */
function tlsOf({ ca }: Transport, { hostname, literal }: ParsedTarget): BunFetchRequestInitTLS {
  return {
    rejectUnauthorized: true,
    ...(literal === null && { serverName: hostname }),
    ...(ca !== undefined && { ca }),
  };
}

async function callAddress(
  transport: Transport,
  url: string,
  init: BunFetchRequestInit,
  deadline: Deadline,
): Promise<Outcome> {
  let response: Response;
  try {
    response = await transport.fetch(url, init);
  } catch (error) {
    return outcomeOf(error, deadline.cut());
  }
  return answerOf(response, deadline);
}

/** From here on the outcome is `answered`, whatever happens to the body. */
async function answerOf(response: Response, deadline: Deadline): Promise<Answered | Unknown> {
  const { status, headers } = response;
  if (status < 200 || status > 599) {
    await closeBody(response.body);
    return NOT_HTTP;
  }
  const { bytes, truncated, isBroken } = await readBody(response.body);
  return {
    kind: "answered",
    code: status,
    body: responseJson(bytes, truncated),
    truncated,
    brokenBy: isBroken ? breakerOf(deadline) : null,
    retryAfter: headers.get("retry-after")?.slice(0, RETRY_AFTER_CHARS_MAX) ?? null,
    location: headers.get("location")?.slice(0, LOCATION_CHARS_MAX) ?? null,
  };
}

function breakerOf(deadline: Deadline): "timed_out" | "closed" {
  return deadline.cut() === "timed_out" ? "timed_out" : "closed";
}

const STOPPED: Stopped = { kind: "stopped" };

const NOT_HTTP: Unknown = { kind: "unknown", fault: "not_http" };

const NOT_ALLOWED: NotSent = { kind: "not_sent", fault: "address_never" };

/** Longer than any date. A longer number is beyond every limit even when cut. */
const RETRY_AFTER_CHARS_MAX = 64;

/**
 * A client that does not keep connections sends `close` (RFC 9112, 9.3). The target then closes first, which keeps our
 * ports out of TIME_WAIT.
 */
const FRAMING: readonly string[][] = [
  ["Accept-Encoding", "identity"],
  ["Connection", "close"],
];
