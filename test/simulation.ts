/** `bun test/simulation.ts --seed N` tells the story of one seed; `--seeds M` tries so many from there. */
import { parseArgs } from "node:util";
import { simulate } from "./simulation/simulate.ts";
import { openDatabase } from "./simulation/world.ts";

const { values } = parseArgs({ options: { seed: { type: "string" }, seeds: { type: "string" } } });
const first = Number(values.seed ?? 1);
const count = Number(values.seeds ?? 1);
let failed = 0;
await using database = await openDatabase();
for (let seed = first; seed < first + count; seed += 1) {
  const { story, violations } = await simulate(seed, database);
  if (count === 1 || violations.length > 0) process.stdout.write(`${story}\n`);
  if (violations.length > 0) failed += 1;
  for (const { invariant, what } of violations) process.stdout.write(`seed ${seed} breaks "${invariant}": ${what}\n`);
}
process.stdout.write(`${count - failed} of ${count} seeds kept every promise.\n`);
process.exitCode = failed === 0 ? 0 : 1;
