import type { Action } from "./action.ts";
import { SMALL_ROW_BYTES_MAX } from "./limits.ts";

/** Bytes of the body and headers of an action, where they are more than `SMALL_ROW_BYTES_MAX`. */
export function largeBytesOf({ body, headers }: Pick<Action, "body" | "headers">): number | undefined {
  let bytes = body === null ? 0 : Buffer.byteLength(body);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  return bytes > SMALL_ROW_BYTES_MAX ? bytes : undefined;
}

/** Bytes as people say them. */
export function sizeWords(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${size.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}
