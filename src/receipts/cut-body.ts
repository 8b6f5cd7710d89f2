import { isJsonObject } from "../core/json.ts";
import type { ActionRequest } from "../core/action.ts";
import { BASE64_START, usedBodyMember, isJsonMember } from "../core/body.ts";

interface CutText {
  readonly text: string;
  /** Size before the cut; null: not cut. */
  readonly bytes: number | null;
}

/** Cuts a body by its kind, in the form in which it is stored. Null: there is no body. */
export function cutRequestBody(action: Pick<ActionRequest, "body" | "extras">, bytesMax: number): CutText | null {
  const { body } = action;
  const member = usedBodyMember(action);
  if (body === null || member === null) return null;
  if (isJsonMember(member)) return cutJson(body, bytesMax);
  if (Buffer.byteLength(body) <= bytesMax) return { text: body, bytes: null };
  const start = member === "text" ? beginning(body, bytesMax) : body.slice(0, bytesMax);
  // A form is cut after its last whole field. The limit is a multiple of four, so that cut base64 can be decoded.
  const text = member === "form" ? start.slice(0, Math.max(start.lastIndexOf("&"), 0)) : start;
  return { text, bytes: Buffer.byteLength(body) };
}

/** Cuts a JSON text: a long one becomes a string with its beginning; a binary body stays base64. */
export function cutJson(json: string, bytesMax: number): CutText {
  const bytes = Buffer.byteLength(json);
  // In JSON strings, line breaks are escaped, so these can only be between tokens.
  if (bytes <= bytesMax) return { text: json.replaceAll(/[\r\n]+/g, " "), bytes: null };
  // Other JSON is cut as text: parsing a megabyte would block the event loop.
  const value: unknown = json.startsWith('"') || json.startsWith(BASE64_START) ? JSON.parse(json) : json;
  if (isBytes(value)) {
    // The limit is a multiple of four, so that the rest can be decoded.
    const data = value.data.slice(0, bytesMax);
    return { text: JSON.stringify({ encoding: "base64", data }), bytes };
  }
  return { text: JSON.stringify(beginning(typeof value === "string" ? value : json, bytesMax)), bytes };
}

/** Whether a stored body is binary. */
export function isBytes(value: unknown): value is { readonly encoding: "base64"; readonly data: string } {
  if (!isJsonObject(value) || Object.keys(value).length !== 2) return false;
  return value["encoding"] === "base64" && typeof value["data"] === "string";
}

/** Cuts between characters: with `stream`, the decoder holds back an incomplete one. */
function beginning(text: string, bytesMax: number): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax), { stream: true });
}
