import { setDefaultTimeout } from "bun:test";

// Real sockets, files and child processes, sometimes on a busy machine: a hang should fail, a slow start should not.
setDefaultTimeout(20_000);
