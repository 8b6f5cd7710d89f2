import { exchange, request } from "../../test/http/wire.ts";
import { OWNER_KEY, Service } from "../../test/support/service.ts";
import { broken, type FaultReport } from "../../test/support/faults/report.ts";

const ARRIVAL_MS_MAX = 34_000;
const KEY = `Authorization: Bearer ${OWNER_KEY}`;

/** Requests that do not arrive whole, against the limits that the service really has: at 34 s all of them are closed (B124). */
export async function lateRequests(): Promise<FaultReport> {
  await using service = new Service();
  const port = Number(new URL(await service.ready()).port);
  const post = (headers: readonly string[], body = "") =>
    request("POST /v1/actions", [KEY, "Content-Type: application/json", ...headers], body);
  const kinds = {
    "nothing at all": { first: "", drip: undefined },
    "half a head": { first: "POST /v1/actions HTTP/1.1\r\nHost: a\r\n", drip: undefined },
    "a dripped head": { first: "POST /v1/actions HTTP/1.1\r\nHost: a\r\nX-A: ", drip: "x" },
    "half a body": { first: post(["Content-Length: 100"], "{"), drip: undefined },
    "a dripped body": { first: post(["Content-Length: 10000"], "{"), drip: " " },
    "dripped chunks": { first: post(["Transfer-Encoding: chunked"]), drip: "1\r\n \r\n" },
    "nothing more": { first: request("GET /v1/account", [KEY]), drip: undefined },
  };
  const closedMs = await Promise.all(
    Object.entries(kinds).map(async ([name, { first, drip }]) => {
      const options = { boundMs: 2 * ARRIVAL_MS_MAX, ...(drip === undefined ? {} : { drip }) };
      const seen = await exchange(port, first === "" ? [] : [first], options);
      return [name, seen.isClosed ? seen.closedMs : Number.POSITIVE_INFINITY] as const;
    }),
  );
  const isServed = (await service.request("/v1/account")).status === 200;
  return {
    figures: Object.fromEntries(closedMs),
    problems: broken({
      ...Object.fromEntries(
        closedMs.map(([name, ms]) => [`${name} is closed at 34 s at the latest`, ms <= ARRIVAL_MS_MAX]),
      ),
      "others are served": isServed,
    }),
  };
}
