import { HOUR_MS, MINUTE_MS } from "../../src/core/limits.ts";
import type { Way } from "./connection.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** A machine, its way to the database and the process that it runs; null: none. */
export interface Machine {
  readonly name: string;
  readonly way: Way;
  process: Process | null;
  starts: number;
}

/** How often each comes. */
const FAULTS = {
  kill: 4,
  crash: 4,
  stop: 2,
  freeze: 5,
  away: 5,
  full: 2,
  slow: 3,
  lost: 3,
  unsynced: 1,
  clock: 3,
} as const;

/** Longer than a lease lasts, so that another node takes over. */
const LONG_MS = { min: 26_000, max: 36_000 };
/** How far the wall clock is set. Of several nodes that of the database is: a node that starts just after a step forward takes leases for over. */
const SET_BACK_MS = [-2 * HOUR_MS, -MINUTE_MS, -4_000];
const SET_MS = [...SET_BACK_MS, 30_000, 2 * HOUR_MS];
const SHORT_MS = { min: 200, max: 8_000 };

/** One thing goes wrong, on some machine now or on that of the next call in the middle of it, and is repaired after a while. */
export function fail(world: World, random: Random, machines: readonly Machine[]): void {
  const kind = random.choose(FAULTS);
  // From these others take over, if they last and a call is under way.
  const isTakenOver = kind === "freeze" || kind === "away";
  const { min, max } = random.chance(isTakenOver ? 0.7 : 0.15) ? LONG_MS : SHORT_MS;
  const begin = (machine: Machine | undefined) => {
    if (machine !== undefined)
      breakDown({ world, machine, random, ms: random.between(min, max), isAlone: machines.length === 1 }, kind);
  };
  if (random.chance(isTakenOver ? 0.8 : 0.5)) {
    world.ambushes.push((process) => begin(machines.find((machine) => machine.process === process)));
  } else begin(random.pick(machines));
}

interface Broken {
  readonly world: World;
  readonly machine: Machine;
  readonly random: Random;
  readonly ms: number;
  readonly isAlone: boolean;
}

function breakDown({ world, machine, random, ms, isAlone }: Broken, kind: keyof typeof FAULTS): void {
  const { name, way, process } = machine;
  if (process === null) return;
  const forAWhile = (what: string, set: (isOn: boolean) => void) => {
    world.tell("world", `${what} for ${name}, for ${ms} ms`);
    set(true);
    world.clock.after(ms, () => set(false));
  };
  switch (kind) {
    case "kill":
      return process.kill("killed");
    case "crash":
      // At one of the next writes, before it is done or between that and its answer.
      way.crash = { in: random.between(0, 8), isDone: random.chance(0.5) };
      return;
    case "unsynced":
      way.isUnsynced = true;
      return;
    case "stop":
      return world.keep(process.stop());
    case "freeze":
      process.freeze();
      return void world.clock.after(ms, () => process.thaw());
    case "away":
      return forAWhile("the database is away", (isOn) => (way.isAway = isOn));
    case "full":
      return forAWhile("the disk is full", (isOn) => (way.isFull = isOn));
    case "slow":
      return forAWhile("writes are slow", (isOn) => (way.isSlow = isOn));
    case "clock": {
      const byMs = random.pick(isAlone ? SET_MS : SET_BACK_MS) ?? 0;
      return world.setClock(byMs);
    }
    case "lost":
      return forAWhile("answers of writes are lost", (isOn) => (way.isLossy = isOn));
  }
}

/** Nothing new goes wrong. */
export function calm(world: World, machines: readonly Machine[]): void {
  world.ambushes.length = 0;
  for (const { way } of machines) Object.assign(way, { crash: null, isUnsynced: false });
}

/** Whether it serves and nothing is wrong with it. */
export function isWell({ way, process }: Machine): boolean {
  const isAtWork = process !== null && process.isServing && !process.isFrozen;
  return isAtWork && !(way.isAway || way.isFull || way.isSlow || way.isLossy);
}
