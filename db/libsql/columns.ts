import type { Row } from "./sql.ts";

/** The last millisecond of `Date` (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8_640_000_000_000_000;

/**
 * Reads the columns of one row that somebody may have altered by hand. A value that the service never writes there comes
 * out as a legal one, and `isBroken` says so: thrown, it would keep every row that is read with it from being listed,
 * claimed and rescued.
 */
export class Columns {
  readonly #row: Row;
  #isBroken = false;

  constructor(row: Row) {
    this.#row = row;
  }

  /** Whether a value that was read so far is none that the service writes. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  text(name: string): string {
    return this.textOrNull(name) ?? this.#broken("");
  }

  textOrNull(name: string): string | null {
    const value: unknown = this.#row[name];
    if (value === null || typeof value === "string") return value;
    // What the drivers give for a blob.
    const bytes = value instanceof ArrayBuffer ? Buffer.from(value).toString("utf8") : null;
    return this.#broken(bytes ?? (typeof value === "number" ? String(value) : null));
  }

  oneOf<Value extends string>(name: string, values: readonly Value[], otherwise: Value): Value {
    const value = this.#row[name];
    return values.find((one) => one === value) ?? this.#broken(otherwise);
  }

  /** Whole, and not below `least`. */
  count(name: string, least: number): number {
    const value = this.#row[name];
    return typeof value === "number" && Number.isSafeInteger(value) && value >= least ? value : this.#broken(least);
  }

  /** 0 or 1. */
  flag(name: string, otherwise: boolean): boolean {
    const value = this.#row[name];
    return value === 0 || value === 1 ? value === 1 : this.#broken(otherwise);
  }

  time(name: string): Date {
    return this.timeOrNull(name) ?? this.#broken(new Date(0));
  }

  timeOrNull(name: string): Date | null {
    const value = this.#row[name] ?? null;
    if (value === null) return null;
    const isTime = typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= DATE_MS_MAX;
    return isTime ? new Date(value) : this.#broken(null);
  }

  #broken<Value>(otherwise: Value): Value {
    this.#isBroken = true;
    return otherwise;
  }
}
