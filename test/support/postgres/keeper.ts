/**
 * Keeps the PostgreSQL of the tests: starts it in the folder that it is given, and stops and deletes it when none of the
 * processes that wrote their id into `users` is alive. A process of its own, so that a test run that is killed leaves
 * nothing behind.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, makeServerFolder, PostgresServer } from "./server.ts";

const LOOK_EACH_MS = 500;
/** Enough for the nodes of a cluster beside the connections of other tests. */
const CONNECTIONS_MAX = 300;

const folder = process.argv[2] ?? "";
const ready = join(folder, "ready");
writeFileSync(join(folder, "keeper"), String(process.pid));
// Whoever ends a test run by Ctrl+C means the tests: this one sees that they have gone.
for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"] as const) process.on(signal, () => {});

let server: PostgresServer | null = null;
try {
  server = await PostgresServer.create({
    folder: makeServerFolder(join(folder, "server")),
    password: randomBytes(16).toString("hex"),
    settings: {
      max_connections: String(CONNECTIONS_MAX),
      // What is tested here is the service. Power cuts of a machine are the database's own subject.
      fsync: "off",
      full_page_writes: "off",
      shared_buffers: "64MB",
      // A database that is set to wait for it waits for ever.
      synchronous_standby_names: "away",
      synchronous_commit: "local",
    },
  });
  await server.start();
  announce(server.url("postgres"));
  // A user writes its id and then reads `ready`; here it is the other way round, so that one of the two sees the other.
  for (;;) {
    await Bun.sleep(LOOK_EACH_MS);
    if (hasUsers()) continue;
    rmSync(ready);
    if (!hasUsers()) break;
    announce(server.url("postgres"));
  }
} catch (error) {
  writeFileSync(join(folder, "failed"), error instanceof Error ? error.message : String(error));
  // Until those who wait have read it.
  for (let looks = 0; looks < 10 && hasUsers(); looks += 1) await Bun.sleep(LOOK_EACH_MS);
} finally {
  if (server !== null && server.processId() !== null) await server.stop("immediate").catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}

function announce(url: string): void {
  writeFileSync(`${ready}.new`, url, { mode: 0o600 });
  renameSync(`${ready}.new`, ready);
}

function hasUsers(): boolean {
  const users = join(folder, "users");
  if (!existsSync(users)) mkdirSync(users, { recursive: true });
  return readdirSync(users).some((name) => isAlive(Number(name)));
}
