import { EditedText } from "./edited-text.ts";
import { type Masking, secretKind } from "./mask-rules.ts";

/** The start of an element of XML and the text in it. Each part ends at the next `<`, so that no text is read twice. */
const ELEMENT = /<([A-Za-z_][\w.-]{0,127}:)?([A-Za-z_][\w.-]{0,127})(?:\s[^<>]*)?>(?:<!\[CDATA\[)?([^<\]]+)/g;

/** Masks the texts of elements with the name of a secret, as in `<wsse:Password>…</wsse:Password>`, in any text. */
export function maskElements(text: string, masking: Masking): string {
  if (!text.includes("<")) return text;
  const masked = new EditedText(text);
  for (const { 0: whole, 2: name = "", 3: content = "", index } of text.matchAll(ELEMENT)) {
    const value = content.trim();
    const kind = value === "" ? null : secretKind(name);
    if (kind === null || !masking.hidesNamed(value)) continue;
    const start = index + whole.length - content.length + content.indexOf(value);
    masked.replace(start, start + value.length, masking.hide(value, kind));
  }
  return masked.toString();
}
