import { expect, test } from "bun:test";
import { Glob } from "bun";
import { judge, readCitations } from "./gate.ts";
import { REQUIREMENTS } from "./verifies.ts";

const TESTS = new URL("..", import.meta.url).pathname;

test("every requirement has a test, and every test names a requirement that exists", async () => {
  // A conformance suite is a test, too: `test/db/*.test.ts` runs it for each store.
  const patterns = ["**/*.test.{ts,tsx}", "**/conformance/*.ts"];
  const files = patterns.flatMap((pattern) => [...new Glob(pattern).scanSync(TESTS)]).toSorted();
  const readings = await Promise.all(
    files.map(async (file) => readCitations(`test/${file}`, await Bun.file(TESTS + file).text())),
  );
  const { total, tested, later, problems } = judge(REQUIREMENTS, readings);
  console.log(
    `${total} requirements: ${tested} of ${total - later} tested, ${later} later (${files.length} test files)`,
  );
  expect(files.length).toBeGreaterThan(0);
  if (problems.length > 0) throw new Error(`${problems.length} problems:\n  ${problems.join("\n  ")}`);
});

test("ids are lower-case, dot separated, and name their document", () => {
  const odd = REQUIREMENTS.filter(({ id }) => !/^(spec|decision|hostile)(\.[a-z0-9]+(-[a-z0-9]+)*)+$/.test(id));
  expect(odd).toEqual([]);
});

test("what is left for later names one of the issues that are open", () => {
  const odd = REQUIREMENTS.filter(({ later }) => later !== undefined && (later < 3 || later > 7));
  expect(odd).toEqual([]);
});
