import type { Viewer } from "../accounts/roles.ts";
import { looksGenerated } from "./find-secrets.ts";

/** The start of every mask. Alone it replaces values that are always hidden. */
export const MASK = "••••";

/** Secrets of at least this length show their last four characters, so that people can tell keys apart. */
const TAIL_FROM_CHARS = 16;

const TAIL_CHARS = 4;

/** Characters that are left out of a mask: they could end a value in JSON, a form or a URL. */
const NO_TAIL = /[^A-Za-z0-9._~-]/g;

const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;

/** A mask as `maskOf` writes it, or `••••` alone. */
export const MASK_PATTERN = /••••(?:\([A-Za-z0-9.-]{1,40},\d{1,9}-chars?(?:,…[A-Za-z0-9._~-]{1,4})?\))?/g;

/** The mask of a secret: kind, length and end, like `••••(GitHub-token,40-chars,…a1B2)`. */
export function maskOf(secret: string, kind: string): string {
  const chars = secret.length - (secret.match(SURROGATE_PAIR)?.length ?? 0);
  const tail =
    chars < TAIL_FROM_CHARS
      ? ""
      : secret
          .slice(-2 * TAIL_CHARS)
          .replace(NO_TAIL, "")
          .slice(-TAIL_CHARS);
  return `${MASK}(${kind.replaceAll(" ", "-")},${chars}-char${chars === 1 ? "" : "s"}${tail === "" ? "" : `,…${tail}`})`;
}

/** The text without the masks in it. */
export function withoutMasks(text: string): string {
  return text.includes(MASK) ? text.replace(MASK_PATTERN, "") : text;
}

/** Counts hidden values. */
export interface Tally {
  hidden: number;
}

/** Values that can't be secret. */
const CONSTANTS = new Set(["", "true", "false", "null"]);

/** The rules for the values that a viewer may not see; counts what it hides. */
export class Masking {
  readonly viewer: Viewer;
  readonly #tally: Tally;

  constructor(viewer: Viewer, tally: Tally) {
    this.viewer = viewer;
    this.#tally = tally;
  }

  /** The mask of a secret. A mask is returned as it is. */
  hide(secret: string, kind: string): string {
    if (secret.startsWith(MASK) && withoutMasks(secret) === "") return secret;
    this.#tally.hidden += 1;
    return maskOf(secret, kind);
  }

  /**
   * Whether to hide a value with the name of a secret. From the public always; from deciders only if it looks generated,
   * or an agent could hide a request from them by naming its parts tokens.
   */
  hidesNamed(value: string): boolean {
    return this.viewer === "public" ? !CONSTANTS.has(value) : looksGenerated(withoutMasks(value));
  }
}
