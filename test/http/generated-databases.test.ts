import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { eventually } from "../support/eventually.ts";
import { IS_LONG, SEED } from "../support/long.ts";
import { hasPostgres } from "../support/postgres.ts";
import { createMigrated } from "../support/postgres-store.ts";
import { aQuery } from "../support/factory.ts";
import { type Draft, drafts } from "./generated-requests.ts";
import { Rig } from "./generated-rig.ts";

const REQUESTS = IS_LONG ? 5_000 : 300;
/** Between two requests, so that what is due at a time comes due. */
const STEP_MS = 1_500;
/** More than any request takes: none waits for the clock. */
const IDLE_MS = 60_000;

/** More than there are of what is not yet over. */
const ROWS_MAX = 1_000;
const ROWS = { people: 0, grants: 1 };

/**
 * What waits for the clock, goes on after its answer, tells of the process, or lists rows of one time, which come in the order of their ids: the keys that the
 * server of the tests begins with.
 */
const LEFT_OUT = /wait=|"sync"|^\/(?:v1\/(?:events|server|overview|(?:keys|bulk)(?:$|\?))|metrics)/;

test.skipIf(!hasPostgres)(
  "a file and PostgreSQL answer the same requests with the same words",
  async () => {
    await using file = await Rig.open({}, ROWS);
    await using server = await Rig.open(
      { env: { DATABASE_URL: await createMigrated(), SECRET_KEY: "5f".repeat(32) } },
      ROWS,
    );
    const rigs = [file, server].map((rig) => ({ rig, known: new Map<string, string>() }));
    for (let asked = 0, batch = 0; asked < REQUESTS; batch += 1) {
      const sample = fc.sample(drafts, { seed: SEED ^ Math.imul(batch, 0x9e3779b1), numRuns: 100 });
      for (const draft of sample.filter(({ path, body }) => !LEFT_OUT.test(path) && !LEFT_OUT.test(String(body)))) {
        const answers = await Promise.all(rigs.map(({ rig, known }) => answerOf(rig, known, draft)));
        expect(answers[1]).toEqual(answers[0]);
        asked += 1;
      }
    }
    console.log(`databases: seed ${SEED}, ${REQUESTS} requests to each`);
  },
  { timeout: 300_000 },
);

/** What is said, with ids and secrets by the order in which they came. */
async function answerOf(rig: Rig, known: Map<string, string>, draft: Draft) {
  const { answers } = await rig.send([draft], IDLE_MS);
  await idle(rig);
  rig.app.engine.clock.advance(STEP_MS);
  const [answer] = answers;
  const named = (text: string) =>
    text.replaceAll(NAMED, (one) => {
      if (!known.has(one)) known.set(one, `name ${known.size}`);
      return known.get(one) ?? "";
    });
  const text = named(answer?.text ?? "")
    .replaceAll(PLACES, '"$1":null')
    .replace(RELOADS, "loads again");
  return {
    asked: `${draft.method} ${named(answer?.path ?? "")} ${String(draft.body)}`.slice(0, 1_000),
    status: answer?.status,
    text,
  };
}

/** Ids, tokens and secrets. */
const NAMED = /\b(?:[a-z]{3}_[0-9a-z]{20,}|og_\w+|whsec_[\w+/=]+|[0-9a-z]{26,})|\/r\/[\w-]{20,}/g;

/** How often a receipt loads itself follows from its token. */
const RELOADS = /loads again every \d+ s/;

/** Where rows stand in each database, and secrets without a known beginning. */
const PLACES = /"(seq|next_cursor|last4|secret)":(?:\d+|"[^"]*")/g;

/** Resolves when nothing is under way and nothing is due. */
async function idle({ app: { engine, strangerId } }: Rig): Promise<void> {
  const { actions, outbox } = engine.store;
  const isDue = ({ dueAt }: { readonly dueAt: Date | null }) => dueAt !== null && dueAt <= engine.clock.now();
  const isBusy = async (accountId: string) => {
    // In the order in which a call goes through them.
    const running = await actions.list(aQuery({ accountId, statuses: ["active"] }));
    const told = await outbox.list(accountId, null, ROWS_MAX);
    const isTelling = told.some((row) => row.status === "active" || (row.status === "pending" && isDue(row)));
    return running.actions.length > 0 || running.before !== null || isTelling;
  };
  await eventually(async () => {
    if ((await actions.lanes(null, ROWS_MAX)).some(isDue)) return null;
    return (await isBusy(engine.owner.accountId)) || (await isBusy(strangerId)) ? null : true;
  }, "the end of what is under way");
}
