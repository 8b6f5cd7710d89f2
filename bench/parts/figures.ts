import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const BENCH = join(import.meta.dir, "..");

/** Keeps the figures of a run for the charts; the file's name is relative to `bench`. */
export function saveFigures(file: string, figures: unknown): void {
  const path = join(BENCH, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(figures, null, 2)}\n`);
}

/** What a run has kept. */
export function readFigures(file: string): unknown {
  return JSON.parse(readFileSync(join(BENCH, file), "utf8"));
}
