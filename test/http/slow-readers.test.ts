import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { EVENT_BACKLOG_BYTES_MAX, EVENT_HEARTBEAT_MS } from "../../src/core/limits.ts";
import { Listener } from "../support/listener.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { request } from "./wire.ts";
import { until } from "../support/until.ts";
import { fresh } from "../support/shared.ts";

const KEY = { authorization: `Bearer ${KEYS.owner}` };

/** Far more than the buffers of both ends of a connection on loopback, some 4 MB, and the backlog behind them. */
const BODIES = 100;

const BODY = JSON.stringify({ url: "http://127.0.0.1:9/", approve: true, body: { text: "x".repeat(150_000) } });

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false })));

async function createMany(): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let count = 0; count < BODIES; count += 1) ids.push((await app.call("POST", "/v1/actions", BODY)).json.id);
  return ids;
}

/** A client that asks for events and takes nothing off its connection before it is told to. */
class Sleeper implements Disposable {
  readonly #socket: Socket;
  #text = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes) => (this.#text += bytes.toString("latin1")));
    socket.on("error", () => {});
    socket.pause();
  }

  static async open(lastEventId?: string): Promise<Sleeper> {
    const socket = connect(app.port, "127.0.0.1");
    const headers = [`Authorization: ${KEY.authorization}`, ...(lastEventId ? [`Last-Event-ID: ${lastEventId}`] : [])];
    socket.write(request("GET /v1/events", headers));
    const sleeper = new Sleeper(socket);
    // It has a timer on the clock once it is open.
    await until(() => app.engine.clock.timers !== 0);
    return sleeper;
  }

  /** Takes what there is until the server closes, or until as many events have come. */
  async wake(count = Number.POSITIVE_INFINITY): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#socket.on("close", () => resolve()));
    this.#socket.resume();
    while (this.actions.length < count) {
      const isClosed = await Promise.race([closed.then(() => true), nextTurn(false)]);
      if (isClosed) return;
    }
  }

  /** Ids of the actions in the events that came whole. */
  get actions(): readonly string[] {
    return [...this.#text.matchAll(/"data":\{"id":"(act_\w+)"[^\n]*\}\s/g)].map(([, id]) => id ?? "");
  }

  /** What it would send when it comes back: an id counts once its event is whole. */
  get lastEventId(): string {
    return [...this.#text.matchAll(/id: ([\w-]+)\r?\n(?:[^\n]*\n)*?\n/g)].at(-1)?.[1] ?? "";
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

const ended = () => app.lines.filter(({ event }) => event === "events.ended").map(({ fields }) => fields["why"]);

describe("a reader of events that never reads", () => {
  test("is closed at its backlog, and goes on from the last event that it got", async () => {
    using sleeper = await Sleeper.open();
    await using awake = await Listener.open(`${app.url}/v1/events`, KEY);
    const ids = await createMany();
    expect(ended()).toEqual(["slow"]);
    // Whoever reads is not bothered by it.
    await awake.heard(BODIES);

    await sleeper.wake();
    const got = sleeper.actions;
    expect(got).toEqual(ids.slice(0, got.length));
    const left = ids.slice(got.length);
    expect(left.length * BODY.length).toBeGreaterThan(EVENT_BACKLOG_BYTES_MAX);
    await using resumed = await Listener.open(`${app.url}/v1/events`, { ...KEY, "last-event-id": sleeper.lastEventId });
    const told = await resumed.heard(left.length);
    expect(told.map(({ data }) => (JSON.parse(data) as { data: { id: string } }).data.id)).toEqual(left);
  });

  test("holds up no stop", async () => {
    using _sleeper = await Sleeper.open();
    await createMany();
    expect(ended()).toEqual(["slow"]);
    // The clock of the test stands still: nothing cuts it but what was done to it when it was closed.
    await app.http.stop(1);
  });

  test("of what lies behind is closed, too, when two heartbeats went by without its taking anything", async () => {
    const { engine } = app;
    await createMany();
    using _sleeper = await Sleeper.open("MA");
    const beats: number[] = [];
    while (ended().length === 0) {
      engine.clock.advance(EVENT_HEARTBEAT_MS);
      beats.push(engine.clock.monotonicMs());
      for (let turn = 0; turn < 2_000; turn += 1) await nextTurn();
    }
    expect(ended()).toEqual(["slow"]);
    expect(beats.length).toBeGreaterThan(1);
  });
});

test("what lies behind is told as fast as it is taken, however much it is", async () => {
  const ids = await createMany();
  using sleeper = await Sleeper.open("MA");
  for (let turn = 0; turn < 2_000; turn += 1) await nextTurn();
  expect(ended()).toEqual([]);
  await sleeper.wake(BODIES);
  expect(sleeper.actions).toEqual(ids);
});
