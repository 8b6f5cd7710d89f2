import { CONNECT_TIMEOUT_MS, LOCATION_CHARS_MAX } from "../config/limits.ts";
import type { Answered, NotSent, Outcome, Unknown } from "../actions/outcome.ts";
import { type OutboundRequest, type Sender, type Stopped, type Deadline, openDeadline } from "./deadline.ts";
import { type Address, hostOf } from "./addresses.ts";
import { type Connectable, createConnectable, addressesOf } from "./resolve.ts";
import { isUnconnected, outcomeOf, REFUSED, UNREACHABLE, dropped, readBody, shownAs } from "./response.ts";
import type { TargetPolicy } from "./policy.ts";
import { type ParsedTarget, parseTarget } from "./target.ts";

interface SenderOptions {
  /** PEM of the only certificate authority to trust, in place of the system's: an inner network, or a test. */
  readonly ca?: string;
}

/**
 * Makes calls under the policy. Every call is judged again, by each resolved address, and goes to the first that accepts
 * connections. It has a connection of its own:
 * on a kept one the engine repeats GET, PUT and DELETE by itself and reads one target's stray answer as another's.
 */
export function createSender(policy: TargetPolicy, options: SenderOptions = {}): Sender {
  const session = new Bun.FetchSession({ keepAlive: false });
  const line: Line = { fetch: session.fetch, ca: options.ca, connectable: createConnectable() };
  return {
    async send(request, limits) {
      const deadline = openDeadline(limits);
      try {
        return await sendOnce(policy, line, request, deadline);
      } finally {
        deadline.close();
      }
    },
  };
}

/** How calls leave. */
interface Line {
  readonly fetch: Bun.FetchSession["fetch"];
  readonly ca: string | undefined;
  readonly connectable: Connectable;
}

async function sendOnce(
  policy: TargetPolicy,
  line: Line,
  request: OutboundRequest,
  deadline: Deadline,
): Promise<Outcome | Stopped> {
  if (deadline.cut() === "interrupted") return STOPPED;
  const target = parseTarget(request.url);
  if ("refused" in target) return NOT_ALLOWED;
  const addresses = await addressesOf(policy, target, deadline);
  if ("kind" in addresses) return addresses;
  const init = initOf(line, request, target, deadline);
  let isRefusedByAll = true;
  for (const [at, address] of addresses.entries()) {
    // Each has its share of what is left, so that with a short deadline too a silent one leads on to the next.
    const limitMs = Math.min(CONNECT_TIMEOUT_MS, deadline.leftMs() / (addresses.length - at));
    const isSilent = await line.connectable.isSilent(address, target.port, { limitMs, signal: deadline.signal });
    // No connection for the request was opened yet, or every address so far refused one: nothing has left.
    if (deadline.cut() === "interrupted") return STOPPED;
    if (deadline.cut() === "timed_out") return UNREACHABLE;
    const outcome = isSilent ? UNREACHABLE : await callAddress(line, urlAt(target, address), init, deadline);
    line.connectable.learn(address, target.port, outcome.kind === "answered");
    if (!isUnconnected(outcome)) return outcome;
    isRefusedByAll &&= outcome === REFUSED;
  }
  return isRefusedByAll ? REFUSED : UNREACHABLE;
}

/** The judged address in place of the name: the engine must never resolve anything itself. */
function urlAt({ isHttps, port, rest }: ParsedTarget, address: Address): string {
  return `${isHttps ? "https" : "http"}://${hostOf(address)}:${port}${rest}`;
}

function initOf(
  line: Line,
  { method, headers, body }: OutboundRequest,
  target: ParsedTarget,
  deadline: Deadline,
): BunFetchRequestInit {
  const init: BunFetchRequestInit = {
    method,
    headers: [...headers.map(([name, value]) => [name, value]), ["Host", target.host], ...FRAMING],
    body,
    redirect: "manual",
    // A bomb of 405 bytes would become 445 MB.
    decompress: false,
    // Both are said on every call: the engine obeys the environment otherwise.
    proxy: false,
    signal: deadline.signal,
  };
  if (target.isHttps) init.tls = tlsOf(line, target);
  return init;
}

/** The certificate is judged by the name that the caller wrote, although an address is dialled. */
function tlsOf({ ca }: Line, { hostname, literal }: ParsedTarget): BunFetchRequestInitTLS {
  return {
    rejectUnauthorized: true,
    ...(literal === null && { serverName: hostname }),
    ...(ca !== undefined && { ca }),
  };
}

async function callAddress(line: Line, url: string, init: BunFetchRequestInit, deadline: Deadline): Promise<Outcome> {
  let response: Response;
  try {
    response = await line.fetch(url, init);
  } catch (error) {
    return outcomeOf(error, deadline.cut());
  }
  return answerOf(response, deadline);
}

/** From here on the target has answered, whatever happens to the body (decisions 4). */
async function answerOf(response: Response, deadline: Deadline): Promise<Answered | Unknown> {
  const { status, headers } = response;
  if (status < 200 || status > 599) {
    await dropped(response.body);
    return NOT_HTTP;
  }
  const { bytes, truncated, isBroken } = await readBody(response.body);
  return {
    kind: "answered",
    code: status,
    body: shownAs(bytes, truncated),
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

/** Longer than any date; of a number longer than this the beginning is still beyond every limit. */
const RETRY_AFTER_CHARS_MAX = 64;

/**
 * `close` is due from who does not keep connections (RFC 9112, 9.3), and makes the target close first: otherwise the
 * ports of a minute's calls stay taken here (TIME_WAIT).
 */
const FRAMING: readonly string[][] = [
  ["Accept-Encoding", "identity"],
  ["Connection", "close"],
];
