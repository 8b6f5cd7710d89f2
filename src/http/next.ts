import { NEXT_CHARS_MAX } from "../domain/limits.ts";

/** Where a person goes who wanted nowhere in particular. */
export const HOME_PATH = "/approvals";

/** One slash, then neither a slash nor a backslash; a browser drops what can't be seen, and would read `/\t/` as `//`. */
const OWN_PATH = /^\/(?![/\\])[!-[\]-~]*$/;

/** The path of ours that a `next` names; null for every other text, so that nobody is sent to another site (hostile 7). */
export function nextOf(text: string | null | undefined): string | null {
  return text !== null && text !== undefined && text.length <= NEXT_CHARS_MAX && OWN_PATH.test(text) ? text : null;
}

/** The `next` of a query. */
export function nextIn(search: string): string | null {
  return nextOf(new URLSearchParams(search).get("next"));
}
