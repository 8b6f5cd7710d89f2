import { Database } from "bun:sqlite";
import { statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreUnavailable } from "../../src/core/store.ts";
import { ACCOUNT, aCreation } from "../support/factory.ts";
import { lockTimesOf, openStoreAt, openStoreOf } from "../support/store.ts";

/** What a second process does to a database, one word and a path each: the other side of the tests beside this file. */
const COMMANDS: Readonly<Record<string, (path: string, option: string) => Promise<void>>> = {
  /** Opens the store as the service does, says so, and keeps it until its input ends. */
  async hold(path) {
    const store = await openStoreAt(path).catch((error: unknown) => {
      console.error(String(error));
      process.exit(1);
    });
    console.log("open");
    for await (const _ of process.stdin) continue;
    await store.close();
  },

  /** The same for a remote one, whose lock lasts for so many milliseconds; says so too when it has lost it. */
  async holdRemote(url, lastsMs) {
    const onFatal = (cause: unknown) => {
      console.log(String(cause));
      process.exit(1);
    };
    const store = await openStoreOf(url, { onFatal, lockTimes: lockTimesOf(Number(lastsMs)) }).catch(
      (error: unknown) => {
        console.error(String(error));
        process.exit(1);
      },
    );
    console.log("open");
    for await (const _ of process.stdin) continue;
    await store.close();
  },

  /** Locks the database against writers for so many milliseconds. */
  async lock(path, ms) {
    const database = new Database(path);
    database.run("BEGIN IMMEDIATE");
    console.log("locked");
    await Bun.sleep(Number(ms));
    database.run("COMMIT");
    console.log("released");
  },

  /** Creates without end, 20 at a time, and prints each id when it is acknowledged. */
  async create(path) {
    const store = await openStoreAt(path);
    for (;;) {
      const creations = Array.from({ length: 20 }, () => aCreation());
      await Promise.all(
        creations.map((creation) => store.actions.create(creation).then(() => console.log(creation.action.id))),
      );
    }
  },

  /** Fills a small disk with actions, makes room, and prints what the store said before, meanwhile and after. */
  async fill(folder) {
    const [path, ballast] = [join(folder, "outgate.db"), join(folder, "ballast")];
    const store = await openStoreAt(path);
    writeFileSync(ballast, Buffer.alloc(2 * 1_048_576));
    const acknowledged: string[] = [];
    const create = async () => {
      const creation = aCreation({ body: JSON.stringify({ a: "x".repeat(100_000) }) });
      await store.actions.create(creation);
      acknowledged.push(creation.action.id);
    };
    const isUnavailable = (work: () => Promise<unknown>) =>
      work().then(
        () => false,
        (error: unknown) => error instanceof StoreUnavailable || String(error),
      );
    const probe = () => store.probe();
    const whenFull: unknown[] = [];
    while (whenFull.length === 0 && acknowledged.length < 1_000) {
      const answer = await isUnavailable(create);
      if (answer !== false) whenFull.push(answer);
    }
    const before = acknowledged.length;
    whenFull.push(await isUnavailable(create));
    const readsWhenFull = (await store.actions.find(ACCOUNT, acknowledged[0] ?? "")) !== null;

    unlinkSync(ballast);
    const afterwards = [await isUnavailable(probe), await isUnavailable(create), await isUnavailable(create)];
    const found = await Promise.all(acknowledged.map((id) => store.actions.find(ACCOUNT, id)));
    await store.close();
    const check = new Database(path, { readonly: true }).query("PRAGMA integrity_check").values();
    const lost = found.filter((action) => action === null).length;
    console.log(
      JSON.stringify({ before, whenFull, readsWhenFull, afterwards, lost, check, bytes: statSync(path).size }),
    );
  },
};

const [command = "", path = "", option = ""] = process.argv.slice(2);

await COMMANDS[command]?.(path, option);
