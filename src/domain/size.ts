import type { Action } from "./action.ts";
import { SMALL_ROW_BYTES_MAX } from "./limits.ts";

/** Bytes of the body and headers of an action, where they are more than `SMALL_ROW_BYTES_MAX`. */
export function largeBytesOf({ body, headers }: Pick<Action, "body" | "headers">): number | undefined {
  let bytes = body === null ? 0 : Buffer.byteLength(body);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  return bytes > SMALL_ROW_BYTES_MAX ? bytes : undefined;
}
