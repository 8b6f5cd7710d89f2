import { connect } from "node:net";
import { CONNECTABLE_FRESH_MS, CONNECTABLE_REMEMBERED_MAX } from "../domain/limits.ts";
import { type Address, hostOf } from "./address.ts";

export interface ProbeLimits {
  readonly limitMs: number;
  /** Ends the probe early: then the address counts as silent. */
  readonly signal: AbortSignal;
}

/**
 * Tells an address that is silent from one that takes or refuses a connection, before anything is sent to it: of a call
 * that ends without an answer nobody can tell whether it had connected, and it has to count as sent.
 */
export interface Connectable {
  /** Whether anything comes back. An address that answered a call a moment ago is not asked again. Never rejects. */
  isSilent(address: Address, port: number, limits: ProbeLimits): Promise<boolean>;
  /** Hears how a call to the address ended. */
  learn(address: Address, port: number, isAnswered: boolean): void;
}

export interface ConnectableDeps {
  /** Never goes back. */
  readonly nowMs: () => number;
  /** Whether nothing comes back from the address. Never rejects. */
  readonly probe: Connectable["isSilent"];
}

const SYSTEM: ConnectableDeps = { nowMs: () => performance.now(), probe: isSilent };

export function createConnectable({ nowMs, probe }: ConnectableDeps = SYSTEM): Connectable {
  /** When the last answer came, by address and port; the latest last. */
  const answeredAtMs = new Map<string, number>();
  return {
    async isSilent(address, port, limits) {
      const answeredMs = answeredAtMs.get(nameOf(address, port)) ?? Number.NEGATIVE_INFINITY;
      return nowMs() - answeredMs >= CONNECTABLE_FRESH_MS && probe(address, port, limits);
    },
    learn(address, port, isAnswered) {
      const name = nameOf(address, port);
      answeredAtMs.delete(name);
      if (!isAnswered) return;
      answeredAtMs.set(name, nowMs());
      const [oldest] = answeredAtMs.keys();
      if (answeredAtMs.size > CONNECTABLE_REMEMBERED_MAX && oldest !== undefined) answeredAtMs.delete(oldest);
    },
  };
}

/**
 * A connection that carries no byte and is closed again. Why one fails is left to the call itself: here the engine says
 * ECONNREFUSED of whatever it is. Not `Bun.connect`: what does not come about can't be ended there, and stays for two minutes.
 */
function isSilent(address: Address, port: number, { limitMs, signal }: ProbeLimits): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostOf(address).replace(/^\[(.*)\]$/, "$1"), port });
  const giveUp = () => resolve(true);
  const hear = () => resolve(false);
  // After a pause of the event loop the timer is heard before what came meanwhile: one more turn lets that be heard too.
  let timer = setTimeout(() => {
    timer = setTimeout(giveUp, 1);
  }, limitMs);
  signal.addEventListener("abort", giveUp);
  // They stay until the end: an error that comes later must not go unheard.
  socket.on("connect", hear).on("error", hear).on("close", hear);
  if (signal.aborted) giveUp();
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    socket.destroy();
  });
}

function nameOf(address: Address, port: number): string {
  return `${hostOf(address)}:${port}`;
}
