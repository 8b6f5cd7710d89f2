import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Outcome } from "../../src/core/outcome.ts";
import { mayDo, ROLES } from "../../src/core/roles.ts";
import { OPERATIONS } from "../../src/core/action.ts";
import { answered } from "../support/factory.ts";
import { type Verdict, World } from "./one-approval-model.ts";
import { SEED } from "../support/long.ts";

const OUTCOMES: readonly Outcome[] = [answered(200), answered(500), { kind: "unknown", fault: "closed" }];

const REFUSED = { approve: "not_approvable", cancel: "not_cancellable", retry: "not_retryable" } as const;

const ACTIONS_MAX = 3;

const which = fc.nat(ACTIONS_MAX - 1);

// Those who may decide come oftener, or most orders would end before anything is sent.

// Those who may decide come oftener, or most orders would end before anything is sent.
const decision = fc.record({
  verb: fc.constantFrom("approve", ...OPERATIONS),
  role: fc.constantFrom("owner", "approver", "owner", ...ROLES),
});

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("create" as const),
      role: fc.constantFrom("owner" as const, "agent" as const),
      approve: fc.constantFrom(true, true, false),
      retries: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant("decide" as const), which, asked: fc.tuple(decision) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("decide" as const),
      which,
      asked: fc.array(decision, { minLength: 2, maxLength: 4 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("answer" as const), with: fc.constantFrom(...OUTCOMES) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("time" as const), ms: fc.constantFrom(1, 2_500, 20_000) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("restart" as const), isKilled: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("rest" as const) }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

test("one yes releases one run, whoever decides in whatever order, and whenever the process dies", async () => {
  const runs = Number(process.env["RUNS"] ?? 40);
  const total = { sends: 0, yes: 0, no: 0, crashes: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: "max" }), async (steps) => {
      const world = new World();
      await world.start();
      try {
        // Without something to decide on the first steps would be for nothing.
        await world.create("agent", { approve: true, retries: 2 });
        for (const one of steps) {
          await take(world, one);
          checkTarget(world);
        }
        await playOut(world);
        checkTarget(world);
      } finally {
        await world.end();
      }
      for (const name of ["sends", "yes", "no", "crashes"] as const) total[name] += world.counts[name];
    }),
    { seed: SEED, numRuns: runs },
  );
  console.log(`one yes: seed ${SEED}, ${runs} runs, ${JSON.stringify(total)}`);
  for (const count of Object.values(total)) expect(count).toBeGreaterThan(runs / 4);
}, 120_000);

async function take(world: World, one: Step): Promise<void> {
  if (one.kind === "create" && world.entries.length < ACTIONS_MAX) {
    await world.create(one.role, { approve: one.approve, retries: one.retries });
  }
  if (one.kind === "decide") await decide(world, one);
  if (one.kind === "answer") await world.answer(one.with);
  if (one.kind === "time") world.engine.clock.advance(one.ms);
  if (one.kind === "restart") await world.restart(one.isKilled);
  if (one.kind === "rest") await world.rest();
}

/** A role that does not hold the permission is refused as that; the others are refused by the action's state alone. */
async function decide(world: World, { which: number, asked }: Extract<Step, { kind: "decide" }>): Promise<void> {
  const entry = world.entries[number % world.entries.length];
  if (entry === undefined) return;
  const { actionService, owner } = world.engine;
  const isWaiting = (await actionService.get(owner, entry.id)).status === "awaiting_approval";
  const verdicts = await world.decide(entry, asked);
  const winners = verdicts.filter((verdict) => "revision" in verdict);
  for (const [at, { verb, role }] of asked.entries()) {
    const code = codeOf(verdicts[at]);
    if (!mayDo(role, verb)) expect(code).toBe("forbidden");
    // An agent acts on what its own key created, and retries it as often as was allowed.
    else if (role === "agent" && entry.role !== "agent") expect(code).toBe("forbidden");
    else if (code === "forbidden") expect([verb, role]).toEqual(["retry", "agent"]);
    else if (code !== null) expect(["unavailable", REFUSED[verb]]).toContain(code);
  }
  // Nothing but a decision moves what waits for one.
  const isDecidable = asked.some(({ verb, role }) => {
    return verb !== "retry" && mayDo(role, verb) && (role !== "agent" || entry.role === "agent");
  });
  if (isWaiting && isDecidable) expect(winners.length).toBeGreaterThan(0);
}

function codeOf(verdict: Verdict | undefined): string | null {
  return verdict !== undefined && "code" in verdict ? verdict.code : null;
}

/** Everything that is still to come comes: each call is answered with a failure, and every delay of three attempts passes. */
async function playOut(world: World): Promise<void> {
  for (let round = 0; round < 4; round += 1) {
    await world.rest();
    while (world.isCalled) await world.answer(answered(500));
    world.engine.clock.advance(20_000);
  }
}

function checkTarget({ entries, violations }: World): void {
  const over = entries.filter(({ sends, retries }) => sends > retries);
  expect({ violations, over }).toEqual({ violations: [], over: [] });
}
