import { Database } from "bun:sqlite";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { openFile } from "../../db/libsql/file.ts";
import type { Row, SqlValue } from "../../db/sql/dialect.ts";
import { createStore } from "../../db/sql/store.ts";
import { bootstrap } from "../../src/accounts/bootstrap.ts";
import type { Caller } from "../../src/core/roles.ts";
import type { ActionChange, Store } from "../../src/core/store.ts";
import { createSecrets, type Secrets } from "../../src/crypto/secrets.ts";
import { FakeClock } from "../support/clock.ts";
import { putEmptyDatabase, temporaryFolder } from "../support/store.ts";
import type { Process } from "./process.ts";
import { Random, seededIds } from "./random.ts";
import { type DbConnection, runStatements } from "../../db/commands/command.ts";

/** A database for one seed after the other, since to make one takes longer than a seed. */
export interface SeedDatabase extends AsyncDisposable {
  /** A file as the writer thread opens it, but in this thread, which answers in the same turn. */
  readonly sql: DbConnection;
  /** What is committed by now. */
  readonly look: Database;
}

export async function openDatabase(): Promise<SeedDatabase> {
  const folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  await putEmptyDatabase(path);
  const sql = openFile(path);
  const look = new Database(path, { readonly: true });
  return {
    sql,
    look,
    async [Symbol.asyncDispose]() {
      look.close();
      await sql.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The tables with rows that a service writes; SQLite numbers their rows anew where there is none. */
const TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%migrations%'
  AND (name NOT LIKE 'sqlite_%' OR name = 'sqlite_sequence') ORDER BY name`;

/** A promise that a seed showed to be broken. */
export interface Violation {
  readonly invariant: string;
  readonly what: string;
}

/** What a reader of the event stream has: it goes on from there on whatever process it reaches next. */
export interface Reader {
  position: string | null;
  readonly changes: ActionChange[];
}

/** Turns of the event loop without any call or timer after which nothing moves until the clock does. */
const QUIET_TURNS = 4;

/**
 * What all processes of a seed share: time, the database, the story. Everything takes its time from one clock that moves only
 * when nothing else can, so that one seed is one story.
 */
export class World {
  readonly clock = new FakeClock();
  readonly random: Random;
  readonly secrets: Secrets;
  /** The database itself, without the way to it. */
  readonly sql: DbConnection;
  /** Callers by the name of their key. */
  readonly callers = new Map<string, Caller>();
  /** By the name of the machine that they read from. */
  readonly readers = new Map<string, Reader>();
  /** Names of actions in the story, by id. */
  readonly names = new Map<string, string>();
  /** What happens to a process in the middle of its call, each at one of the next calls. */
  readonly ambushes: ((process: Process) => void)[] = [];
  readonly violations: Violation[] = [];
  readonly #look: Database;
  readonly #story: string[] = [];
  #seq = 0;
  #calls = 0;
  #wasClockSet = false;

  private constructor(seed: number, { sql, look }: SeedDatabase) {
    this.random = new Random(seed);
    const ids = seededIds(this.random.fork());
    this.secrets = createSecrets(ids.bytes(32), (count) => ids.bytes(count));
    this.sql = sql;
    this.#look = look;
  }

  /** A world with an empty database: an account, the keys `owner` and `agent`, nothing else. */
  static async open(seed: number, database: SeedDatabase): Promise<World> {
    const tables = await database.sql.read({ sql: TABLES, args: [] });
    await runStatements(
      database.sql,
      tables.map(({ name }) => ({ sql: `DELETE FROM ${name}`, args: [] })),
    );
    const world = new World(seed, database);
    await world.#bootstrap();
    return world;
  }

  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  get story(): string {
    return this.#story.join("\n");
  }

  /** A store that reaches the database at once and never fails, to look at the end. */
  openStore(): Store {
    const fails = (cause: unknown) => {
      throw new Error("The database of the simulation failed.", { cause });
    };
    const [own, clock] = [{ ...this.sql, close: async () => {} }, this.clock];
    const parts = { connection: own, seal: this.secrets, cluster: null, isOnlyProcess: true };
    return createStore({ ...parts, clock, onFatal: fails });
  }

  async #bootstrap(): Promise<void> {
    const { clock, secrets } = this;
    const { accounts, people, facts } = this.openStore();
    const ids = seededIds(this.random.fork());
    await bootstrap({ accounts, people, facts, secrets, ids, clock, givenOwnerKey: null });
    const accountId = (await accounts.first())?.id ?? "";
    for (const { id, name, role } of await accounts.keys(accountId, 10)) {
      this.callers.set(name, { accountId, keyId: id, keyName: name, role, hold: "none", actor: `key:${name}` });
    }
  }

  /** Whether the wall clock was set, after which times of different nodes can't be compared. */
  get wasClockSet(): boolean {
    return this.#wasClockSet;
  }

  setClock(byMs: number): void {
    this.#wasClockSet = true;
    this.tell("world", `the wall clock is set by ${byMs} ms`);
    this.clock.jump(byMs);
  }

  caller(name: string): Caller {
    const caller = this.callers.get(name);
    if (caller === undefined) throw new Error(`There is no key ${name}.`);
    return caller;
  }

  tell(who: string, what: string): void {
    this.#story.push(`${(this.nowMs / 1_000).toFixed(3).padStart(8)}  ${who.padEnd(7)} ${what}`);
  }

  violate(invariant: string, what: string): void {
    this.violations.push({ invariant, what });
    this.tell("BROKEN", `${invariant}: ${what}`);
  }

  /** For work that nobody awaits: an error of it is a violation. */
  keep(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.violate("nothing fails for an unknown reason", Bun.inspect(error)));
  }

  /** Something was begun: what follows from it comes before the next timer. */
  stir(): void {
    this.#calls += 1;
  }

  nameOf(id: string): string {
    return this.names.get(id) ?? id;
  }

  /** Rows of the database as they are now, at once. */
  look(sql: string, ...args: SqlValue[]): readonly Row[] {
    return this.#look.query<Row, SqlValue[]>(sql).all(...args);
  }

  /** Tells what a commit has added to the timelines. */
  tellCommits(who: string): void {
    const sql = `SELECT t.seq, t.action_id, t.run, t.type, t.status, t.detail, a.title FROM timeline t
      JOIN actions a ON a.id = t.action_id WHERE t.seq > ? ORDER BY t.seq`;
    for (const row of this.look(sql, this.#seq)) {
      this.#seq = Number(row["seq"]);
      const id = String(row["action_id"]);
      this.names.set(id, String(row["title"]));
      const detail = String(row["detail"]).replaceAll(/"(?:actor|duration_ms|next_retry_at|location)":[^,}]*,?/g, "");
      const what = `${String(row["type"])} -> ${String(row["status"])} ${detail === "{}" ? "" : detail}`;
      this.tell(who, `writes ${this.nameOf(id)} run ${Number(row["run"])}: ${what}`);
    }
  }

  /** Lets time pass, timer by timer, until this holds or so much time has passed. False: it does not hold. */
  async run(limitMs: number, isOver: () => boolean = () => false): Promise<boolean> {
    const endMs = this.nowMs + limitMs;
    while (true) {
      await this.#settle();
      if (isOver() || this.violations.length > 0) return true;
      const nextMs = this.clock.nextMs;
      if (nextMs === null || nextMs > endMs) break;
      this.clock.advance(nextMs - this.nowMs);
    }
    this.clock.advance(endMs - this.nowMs);
    return false;
  }

  async #settle(): Promise<void> {
    for (let quiet = 0, seen = this.#calls; quiet < QUIET_TURNS; quiet += 1) {
      await nextTurn();
      if (this.#calls === seen) continue;
      seen = this.#calls;
      quiet = 0;
    }
  }
}
