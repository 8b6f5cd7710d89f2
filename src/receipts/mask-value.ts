import type { Viewer } from "../accounts/roles.ts";
import { looksGenerated } from "./find-secrets.ts";

/** How every mask begins. Alone it stands for something that is withheld whatever it is. */
export const MASK = "••••";

/** A secret of at least so many characters shows its last four: enough to tell two keys apart, too few to guess one. */
const TAIL_FROM_CHARS = 16;

const TAIL_CHARS = 4;

/** No sign that ends a value in JSON, a form or a URL: a mask is one word wherever it stands. */
const NO_TAIL = /[^A-Za-z0-9._~-]/g;

const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;

/** A mask as `maskOf` writes it, or `••••` alone. */
export const MASK_PATTERN = /••••(?:\([A-Za-z0-9.-]{1,40},\d{1,9}-chars?(?:,…[A-Za-z0-9._~-]{1,4})?\))?/g;

/** What is shown in place of a secret: what it is, how long, and how it ends. `••••(GitHub-token,40-chars,…a1B2)`. */
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

/** How many values were hidden. */
export interface Tally {
  hidden: number;
}

/** What says nothing that could be secret. */
const CONSTANTS = new Set(["", "true", "false", "null"]);

/** What one viewer may not see: the rules for values, and how many of them were hidden. */
export class Masking {
  readonly viewer: Viewer;
  readonly #tally: Tally;

  constructor(viewer: Viewer, tally: Tally) {
    this.viewer = viewer;
    this.#tally = tally;
  }

  /** The mask of what has to be hidden whoever looks. What is masked already comes back as it is. */
  hide(secret: string, kind: string): string {
    if (secret.startsWith(MASK) && withoutMasks(secret) === "") return secret;
    this.#tally.hidden += 1;
    return maskOf(secret, kind);
  }

  /**
   * Whether a value whose name says that it is secret is hidden. From the public always; from whoever decides only what was
   * drawn at random, or a request could be hidden by calling its parts tokens.
   */
  hidesNamed(value: string): boolean {
    return this.viewer === "public" ? !CONSTANTS.has(value) : looksGenerated(withoutMasks(value));
  }
}
