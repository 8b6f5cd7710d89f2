import type { Alphabet, SecretFormat } from "../../src/receipts/secret-formats.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

const ALNUM = `0123456789${LETTERS}${LETTERS.toUpperCase()}`;

const CHARS: Readonly<Record<Alphabet, string>> = {
  alnum: ALNUM,
  lower: `0123456789${LETTERS}`,
  upper: `0123456789${LETTERS.toUpperCase()}`,
  hex: "0123456789abcdef",
  base64: `${ALNUM}+/`,
  base64url: `${ALNUM}-_`,
  dotted: `${ALNUM}-_`,
  path: ALNUM,
};

/** A value of a format as its issuer would draw it; `secret` is the part that has to be hidden. The same for a seed. */
export function exampleOf(format: SecretFormat, seed: number): { readonly whole: string; readonly secret: string } {
  let state = seed * 2_654_435_761;
  const random = (chars: string, count: number) =>
    Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return chars[Math.floor((state / 2 ** 32) * chars.length)] ?? "";
    }).join("");
  const { prefix, alphabet, min, second, isPlace } = format;
  const first = random(CHARS[alphabet], min);
  const rest = second === undefined ? first : first + second.sign + random(CHARS[second.alphabet], second.min);
  return { whole: prefix + rest, secret: isPlace === true ? rest : prefix + rest };
}
