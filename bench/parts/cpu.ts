import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second. */
const MS_PER_TICK = 10;

interface ProcessTimes {
  readonly parent: number;
  readonly ticks: number;
}

/**
 * Processor time, as user and as system, that these processes and their descendants have used, all threads together; of
 * descendants that have ended what their parent has waited for.
 */
export function treeCpuMs(pids: readonly number[]): number {
  const all = new Map<number, ProcessTimes>();
  for (const name of readdirSync("/proc")) {
    const times = /^\d+$/.test(name) ? timesOf(name) : null;
    if (times !== null) all.set(Number(name), times);
  }
  const isInTree = (pid: number): boolean => {
    const times = all.get(pid);
    return pids.includes(pid) || (times !== undefined && isInTree(times.parent));
  };
  return [...all].reduce((sum, [pid, { ticks }]) => sum + (isInTree(pid) ? ticks : 0), 0) * MS_PER_TICK;
}

function timesOf(pid: string): ProcessTimes | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name before it may contain blanks.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { parent: Number(fields[1]), ticks };
  } catch {
    return null;
  }
}
