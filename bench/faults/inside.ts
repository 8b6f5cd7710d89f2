import { runInside } from "../../test/support/namespace.ts";
import type { FaultReport } from "../../test/support/faults/report.ts";

/** Runs a file with an argument in a network of our own; what it prints there is its report. */
export async function reportFromInside(file: string, argument: string, timeoutMs: number): Promise<FaultReport> {
  const { exitCode, output } = await runInside([process.execPath, file, argument], timeoutMs);
  const line = output.split("\n").find((text) => text.startsWith('{"figures"'));
  // Safe: the file prints it.
  if (line !== undefined) return JSON.parse(line) as FaultReport;
  return { figures: { exitCode }, problems: [`It did not run: ${output.slice(-2_000)}`] };
}

export function nft(rules: string): void {
  if (!Bun.spawnSync(["nft", rules]).success) throw new Error(`nft refused: ${rules}`);
}

/** How many packets the chain `i` of a table has dropped. */
export function packetsDropped(table: string): number {
  const listed = Bun.spawnSync(["nft", "list", "chain", "inet", table, "i"]).stdout.toString();
  return [...listed.matchAll(/packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}
