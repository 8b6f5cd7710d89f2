import { DomainError } from "../api/domain-error.ts";
import { FORM_BYTES_MAX, FORM_FIELDS_MAX } from "../config/limits.ts";
import { readBytes, readMediaType } from "./body.ts";
import type { RequestContext } from "./context.ts";

/** The fields of a form that one of our own pages sent; of a name that comes twice the last counts. */
export type Form = ReadonlyMap<string, string>;

/** As `parse-json.ts` has it: what is not UTF-8 is refused, not replaced. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Whether a page sent this, rather than a program. */
export function isForm({ headers }: Request): boolean {
  const { essence, charsets } = readMediaType(headers.get("content-type") ?? "");
  return essence === "application/x-www-form-urlencoded" && charsets.every((charset) => charset === "utf-8");
}

/**
 * Reads a form. Throws `invalid_content_type`, `payload_too_large` or `invalid_request`; whether our own page sent it is
 * to be asked before (`own-origin.ts`).
 */
export async function readForm(context: RequestContext): Promise<Form> {
  const { headers } = context.request;
  const encoding = headers.get("content-encoding") ?? "identity";
  if (!isForm(context.request) || encoding.toLowerCase() !== "identity") {
    throw new DomainError(
      "invalid_content_type",
      "Send the form as `Content-Type: application/x-www-form-urlencoded`.",
    );
  }
  const form = new Map(new URLSearchParams(decode(await readBytes(context, FORM_BYTES_MAX))));
  if (form.size <= FORM_FIELDS_MAX) return form;
  throw new DomainError("invalid_request", `The form has more than ${FORM_FIELDS_MAX} fields.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new DomainError("invalid_request", "The form is not UTF-8.");
  }
}
