import { readMediaType } from "../api/media-type.ts";
import { DomainError } from "../core/domain-error.ts";
import { FORM_BYTES_MAX, FORM_FIELDS_MAX } from "../core/limits.ts";
import { decodeUtf8, readBytes } from "./read-body.ts";
import type { RequestContext } from "./request.ts";

/** The fields of a form, by name. */
export type Form = ReadonlyMap<string, string>;

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
  const fields = new URLSearchParams(decodeUtf8(await readBytes(context, FORM_BYTES_MAX), "The form"));
  const form = new Map(fields);
  if (form.size > FORM_FIELDS_MAX)
    throw new DomainError("invalid_request", `The form has more than ${FORM_FIELDS_MAX} fields.`);
  // If a form has two decisions, it is unknown which one was meant.
  if (form.size < fields.size)
    throw new DomainError("invalid_request", "The form has a field twice. Load the page again, then send its form.");
  return form;
}

/** The query without empty fields, which forms also send. */
export function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
