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
};

const [command = "", path = "", option = ""] = process.argv.slice(2);

await COMMANDS[command]?.(path, option);
