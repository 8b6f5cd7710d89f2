import { expect, test } from "bun:test";
import { cached } from "../../src/observability/runtime.ts";

test("reads once for all who ask while it reads, and for so long behind it, also where it fails", async () => {
  let nowMs = 0;
  let reads = 0;
  let gate = Promise.withResolvers<number>();
  const read = cached(
    10,
    () => nowMs,
    () => {
      reads += 1;
      return gate.promise;
    },
  );
  const both = [read(), read()];
  nowMs = 100;
  both.push(read());
  gate.resolve(7);
  expect(await Promise.all(both)).toEqual([7, 7, 7]);
  nowMs = 109;
  expect(await read()).toBe(7);
  expect(reads).toBe(1);
  gate = Promise.withResolvers();
  nowMs = 110;
  const failed = read();
  gate.reject(new Error("away"));
  expect(await failed.catch(String)).toBe("Error: away");
  expect(await read().catch(String)).toBe("Error: away");
  expect(reads).toBe(2);
});
