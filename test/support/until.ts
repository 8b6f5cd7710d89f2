const BOUND_MS = 10_000;

/** Resolves when something has come true, looked at turn by turn; throws when it has not after ten seconds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + BOUND_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`It did not come true: ${String(holds)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
