import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Stopped } from "../../src/outbound/sender.ts";
import { createSender } from "../../src/outbound/send.ts";
import { runsOf, SEED } from "../support/long.ts";
import { answerBytes, openRawTarget, type RawTarget } from "../support/raw-target.ts";
import { TestAuthority } from "./certificates.ts";
import { LOCAL, requestTo } from "./policies.ts";

const authority = new TestAuthority();

const certificate = authority.issue("DNS:a.localhost,DNS:b.localhost");

afterAll(() => authority[Symbol.dispose]());

const ACCOUNTS = ["acc_one", "acc_two"];

const HOSTS = ["a.localhost", "b.localhost"];

interface Call {
  readonly account: string;
  readonly host: string;
  /** Unlike that of every other call: an honest answer repeats it. */
  readonly name: string;
}

/** Calls that say whose they are, so that the target can answer with that and the test can tell whose answer came. */
function caller() {
  const sender = createSender(LOCAL, { ca: authority.ca });
  return (target: RawTarget, { account, host, name }: Call): Promise<Outcome | Stopped> => {
    const headers = [["X-Call", name]] as const;
    return sender.send(requestTo(target.url("/", host), { headers }), { timeoutMs: 5_000, keepFor: account });
  };
}

const nameOf = (request: string): string => /^X-Call: (.+)$/im.exec(request)?.[1]?.trim() ?? "";

const honest = (request: string): Buffer => answerBytes(200, JSON.stringify(nameOf(request)));

/** An answer that nobody asked for; it says on whose connection it was sent. */
const stray = (request: string): Buffer => answerBytes(200, JSON.stringify(`stray ${nameOf(request)}`));

/** The text of the answer, if one came whole. */
function textOf(outcome: Outcome | Stopped): string | null {
  if (outcome.kind !== "answered" || outcome.truncated || outcome.body === null) return null;
  return String(JSON.parse(outcome.body));
}

const written = (socket: Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => socket.write(bytes, () => resolve()));

describe.each([
  ["http", {}],
  ["https", { tls: certificate }],
])("over %s, a target that", (_scheme, options) => {
  test.each<[string, (socket: Socket) => unknown]>([
    ["closes", (socket) => socket.end()],
    ["resets", (socket) => socket.resetAndDestroy()],
  ])("%s at each byte of a later answer: one send for one attempt, never `not_sent`", async (_name, end) => {
    const call = caller();
    const answer = answerBytes(200, '"later"');
    await using target = await openRawTarget((socket, request) => {
      const [kind, count] = nameOf(request).split(" ");
      if (kind === "first") socket.write(honest(request));
      else socket.write(answer.subarray(0, Number(count)), () => end(socket));
    }, options);
    for (let count = 0; count <= answer.length; count += 1) {
      // An account for each: after a loss its target gets fresh connections.
      const whose = { account: `acc_${count}`, host: "a.localhost" };
      expect(textOf(await call(target, { ...whose, name: `first ${count}` }))).toBe(`first ${count}`);
      const outcome = await call(target, { ...whose, name: `later ${count}` });
      expect(["answered", "unknown"]).toContain(outcome.kind);
      if (textOf(outcome) !== null) expect([textOf(outcome), count]).toEqual(["later", answer.length]);
      expect([target.requests.length, target.connections]).toEqual([2 * count + 2, count + 1]);
    }
  });

  test.each<[string, (socket: Socket, request: string) => Promise<unknown>]>([
    ["in the same write", (socket, request) => written(socket, Buffer.concat([honest(request), stray(request)]))],
    [
      "right after its answer",
      async (socket, request) => {
        socket.write(honest(request));
        await written(socket, stray(request));
      },
    ],
    [
      "byte by byte",
      async (socket, request) => {
        socket.write(honest(request));
        for (const byte of stray(request)) await written(socket, Buffer.of(byte));
      },
    ],
  ])("answers twice, %s: the second one is never taken by a later call", async (_name, answerTwice) => {
    const call = caller();
    const strays = new Map<string, Promise<unknown>>();
    await using target = await openRawTarget(
      (socket, request) => strays.set(nameOf(request), answerTwice(socket, request)),
      options,
    );
    const untrusted: unknown[] = [];
    const worker = async (account: string, host: string) => {
      for (let n = 0; n < 40; n += 1) {
        const name = `${account} ${host} ${n}`;
        const outcome = await call(target, { account, host, name });
        if (textOf(outcome) !== name) untrusted.push([name, outcome]);
        await strays.get(name);
      }
    };
    await Promise.all(ACCOUNTS.flatMap((account) => HOSTS.map((host) => worker(account, host))));
    expect([untrusted, target.requests.length]).toEqual([[], 160]);
  });

  test("sends an answer between two requests: taken by none, however busy we are", async () => {
    const call = caller();
    const sockets = new Map<string, Socket>();
    await using target = await openRawTarget((socket, request) => {
      sockets.set(nameOf(request), socket);
      socket.write(honest(request));
    }, options);
    const count = runsOf(10_000);
    let [next, strayed] = [0, 0];
    const untrusted: unknown[] = [];
    const worker = async (lane: number) => {
      // What is in flight for others makes the thread of the calls slow to see what has arrived.
      const [account, host] = [`acc_${lane % 8}`, HOSTS[lane % 2] ?? ""];
      while (next < count) {
        const name = `${account} ${host} ${(next += 1)}`;
        const outcome = await call(target, { account, host, name });
        if (textOf(outcome) !== name) untrusted.push([name, outcome]);
        const socket = sockets.get(name);
        sockets.delete(name);
        if (socket?.writable !== true) continue;
        // On loopback it has arrived when it is written.
        await written(socket, stray(name));
        strayed += 1;
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, lane) => worker(lane)));
    expect(untrusted).toEqual([]);
    expect([strayed, target.requests.length]).toEqual([next, next]);
  });

  test("does anything of that at random: no answer of another account or origin, one send for one attempt", async () => {
    const call = caller();
    console.log(`hostile connections: seed ${SEED}`);
    const random = randomOf(SEED);
    await using target = await openRawTarget((socket, request) => misbehave(socket, request, random), options);
    const count = runsOf(10_000);
    let [next, taken] = [0, 0];
    const ends = new Map<string, Outcome | Stopped>();
    const worker = async (lane: number) => {
      while (next < count) {
        // Accounts change, so that some are new when others have lost their connections.
        const account = `acc_${lane % 4}_${Math.floor(next / 200)}`;
        const host = HOSTS[lane % 2] ?? "";
        const name = `${account} ${host} ${(next += 1)}`;
        ends.set(name, await call(target, { account, host, name }));
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, lane) => worker(lane)));
    const arrived = Map.groupBy(target.requests, nameOf);
    for (const [name, outcome] of ends) {
      const sends = arrived.get(name)?.length ?? 0;
      expect(sends).toBeLessThanOrEqual(outcome.kind === "not_sent" ? 0 : 1);
      const text = outcome.kind === "answered" ? (outcome.body ?? "") : "";
      const owners = [...text.matchAll(/acc_\d_\d+ [ab]\.localhost /g)].map(([owner]) => owner);
      expect(owners.filter((owner) => !name.startsWith(owner))).toEqual([]);
      // Written after the request was on its way: no client can tell that from the answer. The answer itself may then
      // be taken by the next call in the same way.
      if (!text.includes(name) && owners.length > 0) taken += 1;
    }
    console.log(`of ${next} calls ${taken} took what was sent to another call of their account and origin`);
  });
});

test("a target that answers before it is asked: that goes to a call of the account and origin that connected", async () => {
  const call = caller();
  await using target = await openRawTarget((socket, request) => socket.write(honest(request)), {
    onConnection: (socket) => socket.write(answerBytes(200, '"early"')),
  });
  let early = 0;
  for (let n = 0; n < 200; n += 1) {
    const [account, host] = [ACCOUNTS[n % 2] ?? "", HOSTS[n % 3 === 0 ? 0 : 1] ?? ""];
    const name = `${account} ${host} ${n}`;
    const text = textOf(await call(target, { account, host, name })) ?? "";
    if (text === "early") early += 1;
    else expect(text.split(" ").slice(0, 2)).toEqual([account, host]);
  }
  expect(early).toBeGreaterThan(0);
});

/** One of: a whole answer, two, half of one, none, one that is followed by something else. */
function misbehave(socket: Socket, request: string, random: (below: number) => number): void {
  const answer = honest(request);
  const cut = answer.subarray(0, random(answer.length + 1));
  const later = (act: () => unknown) => void setTimeout(act, random(4));
  switch (random(12)) {
    case 0:
      socket.end(cut);
      break;
    case 1:
      socket.write(cut, () => socket.resetAndDestroy());
      break;
    case 2:
      socket.write(Buffer.concat([answer, stray(request)]));
      break;
    case 3:
      socket.write(answer);
      later(() => socket.write(stray(request)));
      break;
    case 4:
      socket.write(answer);
      later(() => socket.write(stray(request).subarray(0, random(40))));
      break;
    case 5:
      socket.write(answer);
      later(() => socket.end());
      break;
    case 6:
      socket.end(answer);
      break;
    default:
      socket.write(answer);
  }
}

/** A simple generator: the same seed, the same numbers. */
function randomOf(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}
