import { treeCpuMs } from "./cpu.ts";
import { arrivals, createFor, type Measured, settled, statsUrlOf } from "./load.ts";
import { median } from "./time.ts";

/** One of those that are compared in one run. */
export interface Contender extends Measured {
  readonly connections: number;
  /** Whose processor time counts, with their descendants. */
  readonly pids: readonly number[];
  /** It answers only when the target has: there is nothing to wait for afterwards. */
  readonly isSynchronous?: boolean;
  /** Calls that the target gets for those created in this round, if they are more than one each. */
  readonly callsFor?: (created: number) => number;
}

export interface Round {
  readonly createdPerS: number;
  readonly completedPerS: number;
  readonly cpuUs: number;
}

export type Rounds = ReadonlyMap<string, readonly Round[]>;

/**
 * How long each is loaded before the rounds. A service on Bun passes on less than half of its rate in its first seconds under
 * load, and what its compiler threads take then is counted as its own.
 */
const WARM_UP_SECONDS = 8;

/**
 * All are warmed up one after the other. Then they take their turn in every round, in the other direction in every second one, so
 * that a machine that becomes slower favours none. Prints a line for each round.
 */
export async function takeRounds(
  contenders: readonly Contender[],
  {
    rounds,
    seconds,
    warmUpSeconds = WARM_UP_SECONDS,
  }: { readonly rounds: number; readonly seconds: number; readonly warmUpSeconds?: number },
): Promise<Rounds> {
  const results = new Map<string, Round[]>(contenders.map(({ name }) => [name, []]));
  for (const contender of contenders) await takeRound(contender, warmUpSeconds);
  for (let at = 0; at < rounds; at += 1) {
    const line: string[] = [];
    for (const contender of at % 2 === 0 ? contenders : contenders.toReversed()) {
      const round = await takeRound(contender, seconds);
      results.get(contender.name)?.push(round);
      line.push(`${contender.name} ${round.completedPerS.toFixed(0)}/s ${round.cpuUs.toFixed(0)} us`);
    }
    console.log(line.join("  |  "));
  }
  return results;
}

async function takeRound(contender: Contender, seconds: number): Promise<Round> {
  await targetCalls(contender);
  const cpuBefore = treeCpuMs(contender.pids);
  const { created, startedMs, elapsedS } = await createFor(contender, seconds, contender.connections);
  const expected = contender.callsFor?.(created) ?? created;
  // Asking a contender whether it is done costs it time: the target is asked first.
  await arrivals(contender, expected);
  const endedS = contender.isSynchronous === true ? elapsedS : await settled(contender, startedMs);
  const cpuMs = treeCpuMs(contender.pids) - cpuBefore;
  const calls = await targetCalls(contender);
  // A target that is not trusted, or actions that have failed, would look fast.
  if (calls < expected) throw new Error(`${contender.name}: the target got ${calls} calls of ${expected}.`);
  if (calls > expected) console.log(`${contender.name}: ${calls - expected} of ${expected} were sent more than once`);
  return { createdPerS: created / elapsedS, completedPerS: created / endedS, cpuUs: (cpuMs * 1_000) / created };
}

async function targetCalls(contender: Contender): Promise<number> {
  const { calls } = (await (await fetch(statsUrlOf(contender))).json()) as { calls: number };
  return calls;
}

/** A figure of one as a share of the other's in the same round: the median. */
export function ratioOf(rounds: Rounds, pair: readonly [string, string], figure: keyof Round): number {
  return median(ratiosOf(rounds, pair, figure));
}

/** The same with the least and the most. */
export function ratioLine(rounds: Rounds, pair: readonly [string, string], figure: keyof Round): string {
  const ratios = ratiosOf(rounds, pair, figure);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  return `median ${median(ratios).toFixed(3)} (min ${least.toFixed(3)}, max ${most.toFixed(3)}, ${ratios.length} rounds)`;
}

function ratiosOf(rounds: Rounds, [one, other]: readonly [string, string], figure: keyof Round): readonly number[] {
  const others = rounds.get(other) ?? [];
  return (rounds.get(one) ?? []).map((round, at) => round[figure] / (others[at]?.[figure] ?? Number.NaN));
}

/** The median of one figure. */
export function medianOf(rounds: Rounds, name: string, figure: keyof Round): number {
  return median((rounds.get(name) ?? []).map((round) => round[figure]));
}
