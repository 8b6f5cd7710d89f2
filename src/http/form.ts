import { DomainError } from "../api/domain-error.ts";
import { FORM_BYTES_MAX, FORM_FIELDS_MAX } from "../config/limits.ts";
import { readBytes, readMediaType } from "./body.ts";
import type { RequestContext } from "./context.ts";

/** The fields of a form; of a repeated name the last value counts. */
export type Form = ReadonlyMap<string, string>;

/** Throws on bytes that are not UTF-8 instead of replacing them. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Whether the body is an HTML form rather than JSON. */
export function isForm({ headers }: Request): boolean {
  const { essence, charsets } = readMediaType(headers.get("content-type") ?? "");
  return essence === "application/x-www-form-urlencoded" && charsets.every((charset) => charset === "utf-8");
}

/**
 * Reads a form. Throws `invalid_content_type`, `payload_too_large` or `invalid_request`. Check its origin before
 * (`own-origin.ts`).
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
