import { type Masking, MASK, parameterKind } from "./mask-rules.ts";
import { type Action, formatSize } from "../core/action.ts";
import { usedBodyMember, bodyContentType, encodeForm, formPairs, sentBody, sentBytes } from "../core/body.ts";
import { isReadAsUtf8 } from "../api/media-type.ts";
import { BYTES_SHOWN_MAX } from "../core/limits.ts";
import { maskJsonText, maskPair, maskText } from "./masking.ts";
import { type SeenAction, type SeenBytes, storedAction } from "./seen-action.ts";

interface MaskedBody {
  readonly body: string | null;
  readonly bytes?: SeenBytes;
}

/** Masks the body of an action by its kind, in the form in which it is stored. Bytes are shown by `bytes` alone. */
export function maskedBody(action: Action, masking: Masking): MaskedBody {
  const { body } = action;
  const member = usedBodyMember(action);
  if (body === null || member === null) return { body: null };
  if (member === "text") return { body: maskText(body, masking) };
  if (member === "form") {
    // Each value by its name, as in a query, and by its format.
    const pairs = formPairs(body).map((pair) => maskPair(pair, parameterKind(pair[0]), masking));
    return { body: encodeForm(pairs) };
  }
  if (member === "base64") return maskBytes(action, masking);
  return { body: maskJsonText(body, masking) };
}

/**
 * Bytes can hold a secret in any encoding, so the public sees only their size, and deciders the beginning if it is UTF-8. The
 * rest counts as one hidden value.
 */
function maskBytes(action: Action, masking: Masking): MaskedBody {
  const seen = bodyBytes(action, masking.viewer === "public" ? 0 : BYTES_SHOWN_MAX);
  if (!seen.isWhole) masking.hidden += 1;
  const start = seen.start === null ? null : maskText(seen.start, masking);
  return { body: MASK, bytes: { ...seen, start } };
}

/** Bytes with the beginning of their text. With another charset than UTF-8 the target reads another text, so none is shown. */
export function bodyBytes(action: Action, bytesMax = Infinity): SeenBytes {
  const bytes = Buffer.from(sentBody(action) ?? "");
  const isText = isReadAsUtf8(bodyContentType(action) ?? "");
  const shown = bytes.subarray(0, bytesMax);
  const start = isText && shown.length > 0 ? decodeText(shown, shown.length < bytes.length) : null;
  return {
    size: bytes.length,
    start,
    isWhole: bytes.length === 0 || (start !== null && shown.length === bytes.length),
  };
}

/** Decodes bytes as text, without a last character that is cut. Null: no UTF-8, or it contains NUL. */
function decodeText(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** The size of the body as it is sent. */
export function bodySize(action: SeenAction): number {
  return sentBytes(storedAction(action));
}

/** Describes a body: "Form, 3 fields, 45 bytes". May contain the requester's `Content-Type`, which is untrusted. */
export function bodyKindText(action: SeenAction): string {
  const member = usedBodyMember(action);
  if (member === null || action.body === null) return "None";
  const size = bodySize(action);
  if (member === "text") return `Text, ${formatSize(size)}, ${bodyContentType(action)}`;
  if (member === "base64") return `Bytes, ${formatSize(size)}, ${bodyContentType(action)}`;
  if (member !== "form") return `JSON, ${formatSize(size)}`;
  const fields = formPairs(action.body).length;
  return `Form, ${fields === 1 ? "1 field" : `${fields} fields`}, ${formatSize(size)}`;
}
