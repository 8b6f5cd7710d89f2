/** Whether tests take their time (`npm run test:long`): more random cases, all sizes, all looks. */
export const IS_LONG = process.env["LONG_TESTS"] !== undefined;

const SHARE_OF_RUNS = 5;

/** How many random cases a test tries: so many in `npm run test:long`, a fifth of them otherwise. */
export function runsOf(count: number): number {
  return IS_LONG ? count : Math.ceil(count / SHARE_OF_RUNS);
}

/**
 * Where random cases begin. `npm test` tries the same ones each time, so that only a change can break it; `test:long` tries
 * others each time. A failure is repeated with `SEED=`.
 */
export const SEED = Number(process.env["SEED"] ?? (IS_LONG ? Math.floor(Math.random() * 2 ** 31) : 1));
