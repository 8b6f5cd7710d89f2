/** Whether tests take their time (`npm run test:long`): more random cases, all sizes, all looks. */
export const IS_LONG = process.env["LONG_TESTS"] !== undefined;

const SHARE_OF_RUNS = 5;

/** How many random cases a test tries: so many in `npm run test:long`, a fifth of them otherwise. Seeds differ each time. */
export function runsOf(count: number): number {
  return IS_LONG ? count : Math.ceil(count / SHARE_OF_RUNS);
}
