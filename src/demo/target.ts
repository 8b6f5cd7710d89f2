import type { Server } from "bun";
import type { NotSent } from "../core/outcome.ts";
import type { Sender } from "../outbound/sender.ts";

/** A server on this machine that plays every host of the demo. */
interface DemoTarget {
  /** Makes a sender send every call to this target. */
  readonly divert: (sender: Sender) => Sender;
  readonly stop: () => Promise<void>;
}

/** What a host answers, and how long it takes. */
interface Answer {
  readonly status: number;
  readonly body: object;
  readonly ms: number;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Call {
  readonly host: string;
  readonly path: string;
  readonly method: string;
  readonly attempt: number;
  readonly text: string;
  readonly count: number;
}

/** A charge that the payment service doesn't know. */
export const UNKNOWN_CHARGE = "ch_3PqLm8Xw2Rt5Nv9K";

/** A host that always answers 503. */
export const BROKEN_HOST = "files.acme.example";

/** While true, the contacts host answers 503. */
export interface TargetOutage {
  isOn: boolean;
}

/** Starts the target. Every call comes to one address, so the first part of the path names the host. */
export function startTarget(outage: TargetOutage): DemoTarget {
  let count = 0;
  const server: Server<unknown> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      count += 1;
      const [, host = "", ...path] = new URL(request.url).pathname.split("/");
      const call: Call = {
        host,
        path: `/${path.join("/")}`,
        method: request.method,
        attempt: Number(request.headers.get("x-outgate-attempt")),
        text: await request.text(),
        count,
      };
      const { status, body, ms, headers = {} } = answerTo(call, outage);
      await Bun.sleep(ms);
      return status === 204 ? new Response(null, { status, headers }) : Response.json(body, { status, headers });
    },
  });
  const { port } = server;
  const divert = (sender: Sender): Sender => ({
    send: async (request, limits) => {
      const url = URL.parse(request.url);
      if (url === null) return NOT_SENT;
      const { host, pathname, search } = url;
      return sender.send({ ...request, url: `http://127.0.0.1:${port}/${host}${pathname}${search}` }, limits);
    },
  });
  return { divert, stop: () => server.stop(true) };
}

/** For URLs that the service would never store. */
const NOT_SENT: NotSent = { kind: "not_sent", fault: "address_never" };

function answerTo(call: Call, outage: TargetOutage): Answer {
  const { host, path, method, attempt, text, count } = call;
  if (host === BROKEN_HOST && path.startsWith("/exports")) {
    return { status: 503, body: { error: { message: "Storage is read-only until the disk is replaced" } }, ms: 30 };
  }
  if (host === "api.hubapi.com") {
    if (outage.isOn) return { status: 503, body: { message: "Service temporarily unavailable" }, ms: 12 };
    return { status: 200, body: { id: path.split("/").at(-1), updated: true }, ms: 24 + (count % 7) * 6 };
  }
  if (host === "api.stripe.com") {
    if (text.includes(UNKNOWN_CHARGE)) {
      const message = `No such charge: '${UNKNOWN_CHARGE}'`;
      return { status: 404, body: { error: { type: "invalid_request_error", message } }, ms: 90 };
    }
    return {
      status: 200,
      body: { id: `re_3Pq${count}`, object: "refund", status: "succeeded" },
      ms: 80 + (count % 5) * 9,
    };
  }
  if (host === "slack.com") {
    // As for more than one message a second in a channel.
    if (attempt === 1 && count % 9 === 0) {
      return { status: 429, body: { ok: false, error: "ratelimited" }, ms: 15, headers: { "retry-after": "30" } };
    }
    return { status: 200, body: { ok: true, ts: `${1_700_000_000 + count}.000200` }, ms: 40 + (count % 4) * 11 };
  }
  if (host === "api.github.com") return { status: 201, body: { id: 90_000 + count, state: "pending" }, ms: 110 };
  if (method === "DELETE") return { status: 204, body: {}, ms: 35 };
  return { status: 200, body: { ok: true }, ms: 28 + (count % 6) * 5 };
}
