import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const DIGITS = 4;
const BENCH = join(import.meta.dir, "..");

/** Keeps the figures of a run for the charts; the file's name is relative to `bench`. */
export function saveFigures(file: string, figures: unknown): void {
  const path = join(BENCH, file);
  mkdirSync(dirname(path), { recursive: true });
  const short = (_key: string, value: unknown) =>
    typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value;
  writeFileSync(path, `${JSON.stringify(figures, short, 2)}\n`);
}

/** What a run has kept; nothing if there was none. */
export function readFigures(file: string): unknown {
  return !existsSync(join(BENCH, file)) ? [] : JSON.parse(readFileSync(join(BENCH, file), "utf8"));
}
