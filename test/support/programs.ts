import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Where `npm test` has built both (scripts/test.ts); by `bun test` alone they run from source. */
const BUILT = process.env["TEST_PROGRAMS"];

/** The service from source, as a person starts it. */
export const SOURCE = [process.execPath, join(ROOT, "src/main.ts")] as const;

/** The service: the same code, which starts in half the time where it was built. */
export const SERVICE = BUILT === undefined ? SOURCE : ([process.execPath, join(BUILT, "service.js")] as const);

/** The file of the command line, for `bun`. */
export const COMMAND_LINE = BUILT === undefined ? join(ROOT, "src/cli/main.ts") : join(BUILT, "outgate.js");
