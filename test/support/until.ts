import { eventually } from "./eventually.ts";

/** Resolves when something has come true; throws when it has not after 45 s. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(async () => (await holds()) || null, String(holds));
}
