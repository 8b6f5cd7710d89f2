import { describe, expect, test } from "bun:test";
import { simulate } from "./simulation/simulate.ts";
import { openDatabase } from "./simulation/world.ts";
import { IS_LONG } from "./support/long.ts";
import { shared } from "./support/shared.ts";

/** The first of the 300 that `npm run test:guards` tries. */
const SEEDS = Number(process.env["SEEDS"] ?? (IS_LONG ? 10_000 : 30));
const SEEDS_AT_ONCE = 10;

const database = await shared(openDatabase());
/** What whoever sees it fail needs: the promise, the story, and how to tell it again. */
async function brokenBy(seed: number): Promise<string | null> {
  const { violations, story } = await simulate(seed, database);
  if (violations.length === 0) return null;
  const broken = violations.map(({ invariant, what }) => `"${invariant}": ${what}`);
  return `Seed ${seed} breaks ${broken.join(", ")}\n\n${story}\n\nbun test/simulation.ts --seed ${seed}`;
}

describe("whatever fails, the service keeps its promises", () => {
  for (let first = 1; first <= SEEDS; first += SEEDS_AT_ONCE) {
    const last = first + SEEDS_AT_ONCE - 1;
    test(`in the seeds ${first} to ${last}`, async () => {
      for (let seed = first; seed <= last; seed += 1) expect(await brokenBy(seed)).toBeNull();
    });
  }
});

test("one seed tells one story", async () => {
  for (const seed of [1, 2, 3]) {
    const { story } = await simulate(seed, database);
    expect((await simulate(seed, database)).story).toBe(story);
  }
});
