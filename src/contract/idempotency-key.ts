import type { Issue } from "../domain/errors.ts";
import { KEY_CHARS_MAX } from "../domain/limits.ts";

const PRINTABLE = /^[ -~]+$/;
/** The draft RFC's form, a structured-field string (RFC 9651, 3.3.3). */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/** The key in an `Idempotency-Key` header, without the draft RFC's quotes; or what is wrong with it. */
export function readIdempotencyKey(header: string): { readonly key: string } | { readonly issue: Issue } {
  const quoted = QUOTED.exec(header)?.[1];
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(["\\])/g, "$1");
  if (key.length <= KEY_CHARS_MAX && PRINTABLE.test(key)) return { key };
  const message = `Must be 1 to ${KEY_CHARS_MAX} printable ASCII characters.`;
  return { issue: { field: "Idempotency-Key", message } };
}
