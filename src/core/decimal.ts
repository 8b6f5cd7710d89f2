import { BUDGET_DECIMALS_MAX, BUDGET_DIGITS_MAX } from "./limits.ts";

/** A number written as in JSON, but without exponents: programs differ in how they read `1e3`, `0x10`, `1,000` and spaces. */
export const PLAIN_NUMBER = /^-?(0|[1-9]\d{0,30})(\.\d{1,30})?$/;

/** A JSON number exactly: a 64-bit integer, or a double that prints as the same decimal. Null: it has too many digits. */
export function exactNumber(text: string): bigint | number | null {
  if (!INTEGER.test(text)) return isExact(text, Number(text)) ? Number(text) : null;
  const value = text.length <= INT64_CHARS_MAX ? BigInt(text) : null;
  return value !== null && BigInt.asIntN(64, value) === value ? value : null;
}

const INTEGER = /^-?\d+$/;

/** A sign and 19 digits. */
const INT64_CHARS_MAX = 20;

/** Whether a double prints as the decimal that was written. If so, different decimals are different doubles. */
export function isExact(text: string, value: number): boolean {
  if (text.length <= SHORT_CHARS_MAX && SHORT.test(text)) return true;
  return Number.isFinite(value) && Bun.deepEquals(decimalIn(text), decimalIn(String(value)));
}

/** At most 15 digits, which a double always prints again (C, DBL_DIG). */
const SHORT_CHARS_MAX = 16;
const SHORT = /^-?\d+\.\d+$/;

/** Exactly what a decimal says, in units of the smallest part that counts; null: it has more digits than can be added up. */
export function unitsIn(text: string): bigint | null {
  const { sign, digits, zeros } = decimalIn(text);
  const unitZeros = zeros + BUDGET_DECIMALS_MAX;
  if (unitZeros < 0 || digits.length + unitZeros > BUDGET_DIGITS_MAX + BUDGET_DECIMALS_MAX) return null;
  const units = BigInt(digits + "0".repeat(unitZeros));
  return sign === "" ? units : -units;
}

/** A number as its digits without zeros at either end, and a power of ten. Equal numbers have equal parts. */
interface Decimal {
  readonly sign: string;
  readonly digits: string;
  readonly zeros: number;
}

function decimalIn(text: string): Decimal {
  const [, sign = "", whole = "", part = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  const written = (whole + part).replace(/^0+/, "");
  const digits = written.replace(ZEROS_AT_END, "");
  if (digits === "") return { sign: "", digits, zeros: 0 };
  return { sign, digits, zeros: Number(exponent) - part.length + written.length - digits.length };
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The look-behind keeps a long run of zeros in the middle from being tried at each of them. */
const ZEROS_AT_END = /(?<!0)0+$/;
