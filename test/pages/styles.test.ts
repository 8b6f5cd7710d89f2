import { expect, test } from "bun:test";
import { Glob } from "bun";

const SOURCES = new URL("../../src/", import.meta.url).pathname;

const read = async (pattern: string) => {
  const files = [...new Glob(pattern).scanSync(SOURCES)].map((name) => Bun.file(SOURCES + name).text());
  return (await Promise.all(files)).join("\n");
};

test("every class that a stylesheet names is used by a page", async () => {
  const css = (await read("{ui,pages}/**/*.css")).replaceAll(/\/\*.*?\*\//gs, "");
  const sources = await read("{pages,ui,mail}/**/*.{ts,tsx}");
  const words = new Set(sources.split(/[\s"'`]+/));
  const selectors = [...css.matchAll(/[^{}]+(?=\{)/g)].join(" ");
  const classes = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/g)].map(([, name = ""]) => name));
  const isUsed = (name: string) =>
    words.has(name) || sources.includes(`${name.slice(0, name.lastIndexOf("-") + 1)}\${`);
  expect(classes.size).toBeGreaterThan(50);
  // htmx sets that one.
  classes.delete("htmx-request");
  expect([...classes].filter((name) => !isUsed(name))).toEqual([]);
});
