import { join } from "node:path";

export const ROOT = join(import.meta.dir, "../..");

/** Where builds go. */
export const DIST = join(ROOT, "dist");

/** Runs the bundler. Rejects with everything that it says, in an error that begins with `what`. */
export async function bundle(what: string, config: Bun.BuildConfig): Promise<void> {
  const built = await Bun.build({ ...config, throw: false });
  if (built.success) return;
  throw new AggregateError(built.logs, `${what} can't be built: ${built.logs.map(String).join("\n")}`);
}
