import type { ParsedJson } from "../contract/json-text.ts";
import { DomainError } from "../domain/errors.ts";
import { REQUEST_BODY_BYTES_MAX } from "../domain/limits.ts";
import { readMediaType } from "./media-type.ts";
import { type ParseJson, parseJson } from "./parse-json.ts";
import type { RequestContext } from "./visit.ts";

/**
 * The JSON body of a request, judged in the order of hostile 1: content type, size, JSON. Throws `missing_body` when
 * there is none.
 */
export async function readJson(context: RequestContext, parse: ParseJson = parseJson): Promise<ParsedJson> {
  const parsed = await readOptionalJson(context, parse);
  if (parsed !== null) return parsed;
  const type = context.request.headers.get("content-type");
  if (type !== null) checkType(context.request.headers);
  throw new DomainError("missing_body", "Send a JSON body.");
}

/** The same where a body may be left out: null when nothing was sent. */
export async function readOptionalJson(
  context: RequestContext,
  parse: ParseJson = parseJson,
): Promise<ParsedJson | null> {
  const { headers } = context.request;
  if (!context.isBodyUnread) return null;
  checkType(headers);
  const bytes = await readBytes(context, REQUEST_BODY_BYTES_MAX);
  return bytes.length === 0 ? null : parse(bytes);
}

/** The bytes of a body as they come; throws `payload_too_large` as soon as there are more. */
export async function readBytes(context: RequestContext, bytesMax: number): Promise<Uint8Array> {
  const length = context.request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  // The engine keeps to a length that is given; without one the bytes are counted as they come.
  const bytes = length === null ? await readCounted(context.request, bytesMax) : await context.request.bytes();
  context.isBodyUnread = false;
  return bytes;
}

function checkType(headers: Headers): void {
  const type = headers.get("content-type");
  if (type === "application/json" && !headers.has("content-encoding")) return;
  const { essence, charsets } = readMediaType(type ?? "");
  if (essence !== "application/json") throw wrongType("Send the body as `Content-Type: application/json`.");
  if (charsets.some((charset) => charset !== "utf-8")) throw wrongType("JSON is UTF-8: leave the charset out.");
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw wrongType("Send the body without Content-Encoding.");
}

async function readCounted({ body }: Request, bytesMax: number): Promise<Uint8Array> {
  const stream: ReadableStream<Uint8Array> | null = body;
  const reader = stream?.getReader();
  if (reader === undefined) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, size);
    size += value.byteLength;
    if (size > bytesMax) {
      reader.releaseLock();
      throw tooLarge(bytesMax);
    }
    chunks.push(value);
  }
}

function wrongType(message: string): DomainError {
  return new DomainError("invalid_content_type", message);
}

function tooLarge(bytesMax: number): DomainError {
  return new DomainError("payload_too_large", `The body may have ${bytesMax} bytes at most.`);
}
