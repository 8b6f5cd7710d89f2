import { expect, spyOn } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ActionService } from "../../src/actions/service.ts";
import { REQUEST_ARRIVAL_MS_MAX } from "../../src/core/limits.ts";
import { anAction } from "../support/factory.ts";
import { broken, type FaultReport } from "../support/faults/report.ts";
import { stubActionService, KEYS, KNOWN_ID, openStubServer } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";

/** Short, so that nobody waits: the engine looks every four seconds. The service has thirty. */
const ARRIVAL_SECONDS = 4;

/** The limit, a look of the engine behind it, and as much again for a machine on which others wait for this test. */
const BOUND = { boundMs: (ARRIVAL_SECONDS + 8) * 1_000 };

/** Far more than an answer takes, and far less than the limit that holds the others. */
const SERVED_MS_MAX = 1_000;

const KEY = `Authorization: Bearer ${KEYS.owner}`;

const LIST = request("GET /v1/actions", [KEY]);

/** What does not arrive in time, what waits for longer than that, and two hundred that are stuck, beside one that asks. */
export async function lateArrivals(): Promise<FaultReport> {
  await using app = withShortLimit(() => openStubServer({ actionService: slowService() }));
  const { port } = app;
  const sync = `{"url":"https://api.example.com/","sync":true}`;
  const half = (body: string, headers: readonly string[]) =>
    request("POST /v1/actions", [KEY, "Content-Type: application/json", ...headers], body);
  const late = Promise.all([
    exchange(port, [half(`{"u`, ["Content-Length: 32"])], BOUND),
    exchange(port, [half("", ["Content-Length: 1000"])], { ...BOUND, drip: " " }),
    exchange(port, [half("", ["Transfer-Encoding: chunked"])], { ...BOUND, drip: "1\r\n \r\n" }),
    // What asks for a wait has to be there in time as well.
    exchange(port, [half(sync.slice(0, 10), ["Content-Length: 1000"])], { ...BOUND, drip: " " }),
    // A connection on which nothing more comes.
    exchange(port, [LIST], BOUND),
  ]);
  const waiting = Promise.all([
    exchange(port, [request(`GET /v1/actions/${KNOWN_ID}?wait=100`, [KEY, "Connection: close"])]),
    exchange(port, [half(sync, [`Content-Length: ${sync.length}`, "Connection: close"])]),
  ]);
  const stuck = Array.from({ length: 100 }, () => [LIST.slice(0, -2), half("{", ["Content-Length: 32"])]).flat();
  const release = Promise.withResolvers<void>();
  const held = stuck.map((part) => exchange(port, [part, () => release.promise], { leaves: true }));
  const timesMs: number[] = [];
  const others = new Set<number>();
  for (let count = 0; count < 100; count += 1) {
    const startedMs = performance.now();
    others.add((await app.ask("/v1/actions")).status);
    timesMs.push(performance.now() - startedMs);
    await nextTurn();
  }
  const slowMs = timesMs.toSorted((a, b) => a - b)[90] ?? Number.POSITIVE_INFINITY;
  const ends = await late;
  const waited = (await waiting).map(({ text }) => readAnswer(text).status);
  release.resolve();
  await Promise.all(held);
  return {
    figures: { closedMs: Math.max(...ends.map(({ closedMs }) => closedMs)), slowMs },
    problems: broken({
      "what is late is closed": ends.every(({ isClosed }) => isClosed),
      "who waits for an action is answered": waited.join() === "200,201",
      "others are served": [...others].join() === "200" && slowMs < SERVED_MS_MAX,
    }),
  };
}

/** Opens a server whose own limit, that of the service, is replaced by the short one. */
function withShortLimit<Server>(open: () => Server): Server {
  const { serve } = Bun;
  using _ = spyOn(Bun, "serve").mockImplementation((options) => {
    expect(options).toMatchObject({ idleTimeout: REQUEST_ARRIVAL_MS_MAX / 1_000 });
    return serve(Object.assign(options, { idleTimeout: ARRIVAL_SECONDS }));
  });
  return open();
}

/** A service in which a wait lasts longer than a request may take to arrive. */
function slowService(): ActionService {
  const wait = async () => {
    await Bun.sleep(ARRIVAL_SECONDS * 1_000 + 250);
    return anAction({ id: KNOWN_ID, status: "active", attempts: 1 });
  };
  return stubActionService({ wait });
}
