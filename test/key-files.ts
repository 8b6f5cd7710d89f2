import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createMakeLinks } from "../src/approvals/links.ts";
import { readConfig } from "../src/config/config.ts";
import { systemIds } from "../src/core/ids.ts";
import { rotateKey, type RotateKeyOptions } from "../src/admin/rotate-key.ts";
import { type Engine, openEngine } from "./support/engine.ts";
import { aQuery, NOON } from "./support/factory.ts";

type Env = Readonly<Record<string, string>>;

const ORIGINS = ["https://api.example.com", "https://a.example"];

/** Everything that hangs on a key, as the service reads it. */
export interface Sight {
  readonly headers: readonly string[];
  readonly signing: readonly unknown[];
  readonly receipts: readonly string[];
  readonly links: readonly string[];
}

/** Fills a database with so many held actions with headers, one without, and a rotation of signing secrets. */
export async function fillDatabase(folder: string, actions: number, env: Env = {}): Promise<Sight> {
  await using engine = await openEngine({ folder, env, starts: false });
  const signingService = engine.signingService;
  for (const origin of [ORIGINS[0] ?? "", null]) await signingService.rotate(engine.owner, origin);
  await engine.create({ approve: true });
  const created = Array.from({ length: actions }, (_, n) =>
    engine.create({ approve: true, headers: { "X-N": `canary-${n}`, "X-Long": "x".repeat((n % 40) ** 2) } }),
  );
  await Promise.all(created);
  return await sight(engine);
}

/** The same things as a later start sees them. Throws what stops the start. */
export async function readThroughKey(folder: string, env: Env = {}): Promise<Sight> {
  await using engine = await openEngine({ folder, env, starts: false });
  return await sight(engine);
}

/** Runs the change of the key as its command does. */
export function rotateKeyOf(folder: string, options: Partial<RotateKeyOptions> = {}, env: Env = {}) {
  const config = readConfig({ DATABASE_URL: `file:${folder}/outgate.db`, ...env });
  const deps = { clock: { now: () => NOON }, ids: systemIds, onFatal: () => {} };
  return rotateKey(config, { newKey: null, newLinks: false, ...options }, deps);
}

/** All bytes of the database and its log. */
export function bytesOfDatabase(folder: string): string {
  const files = readdirSync(folder).filter((name) => /\.db(-wal|-shm)?$/.test(name));
  return files.map((name) => readFileSync(join(folder, name), "latin1")).join("\n");
}

async function sight(engine: Engine): Promise<Sight> {
  const { store, secrets, owner, clock } = engine;
  const actions = await allActions(engine);
  const linksOf = createMakeLinks(store.links, secrets, "https://outgate.example");
  const some = actions.slice(0, 3);
  const made = await Promise.all(some.map((action) => linksOf(action, clock.now())));
  return {
    headers: actions.map(({ headers }) => headers?.["X-N"] ?? "none"),
    signing: await Promise.all(ORIGINS.map((origin) => engine.signingService.read(owner, origin))),
    receipts: some.map(({ id }) => engine.receiptUrl(id)),
    links: made.flatMap(({ approve, reject }) => [approve, reject]),
  };
}

async function allActions({ store, owner: { accountId } }: Engine) {
  const found = [];
  for (let before: string | null = null; ;) {
    const page = await store.actions.list(aQuery({ accountId, before, limit: 100 }));
    found.push(...page.actions);
    if (page.before === null) return found;
    ({ before } = page);
  }
}

/** The message of the error; null: there was none. */
export const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
