import { readFileSync, writeFileSync } from "node:fs";

/** Bytes of real memory that a process took at most during the work, beyond what it had before. Linux alone can tell. */
export async function peakOf(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = memoryOf(pid, "VmRSS");
  // Forgets the highest mark so far (proc(5), clear_refs).
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  await work();
  return Math.max(0, memoryOf(pid, "VmHWM") - before);
}

/** One of the numbers that the kernel keeps of a process, in bytes. */
export function memoryOf(pid: number, name: "VmRSS" | "VmHWM"): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) * 1_024;
}
