import { setDefaultTimeout } from "bun:test";
import { configureGlobal } from "fast-check";
import { keepThreads } from "./kept-threads.ts";
import { SEED } from "./long.ts";

// Real sockets, files and child processes, sometimes on a busy machine: a hang should fail, a slow start should not. Bun
// forgets it after the first file (measured), so `npm test` says `--timeout 60000` for all of them.
setDefaultTimeout(60_000);
keepThreads();
configureGlobal({ seed: SEED });
