import { indexOrEnd } from "./characters.ts";
import { withoutEntities } from "./mask-encoded.ts";
import { EditedText, isNamedMember, isNamingMember, type Masking, secretKind } from "./mask-rules.ts";

/** Masks elements and attributes of XML and HTML with the name of a secret, in any text. */
export function maskMarkup(text: string, masking: Masking): string {
  return text.includes("<") ? maskAttributes(maskElements(text, masking), masking) : text;
}

/** The start of an XML element and the text in it. Each part ends at the next `<`, so that no text is read twice. */
const ELEMENT =
  /<(?:[A-Za-z_][\w.-]{0,127}:)?([A-Za-z_\u0080-\uffff][\w.\u0080-\uffff-]{0,127})(\s[^<>]*)?>(?:<!\[CDATA\[)?([^<]+)/g;

/** `<entry key="password">`, `<string name="api_key">`, `<textarea name=password>` */
const NAMED_ELEMENT = /\s(?:name|key|id)\s{0,8}=\s{0,8}(?:["']([^"'<>]{1,256})|([^\s"'<>]{1,256}))/i;

const CDATA_END = "]]>";

/** Masks XML elements with the name of a secret in any text, as in `<wsse:Password>…</wsse:Password>`. */
function maskElements(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  for (const { 0: whole, 1: name = "", 2: attributes = "", 3: content = "", index } of text.matchAll(ELEMENT)) {
    const [, quoted, bare = ""] = NAMED_ELEMENT.exec(attributes) ?? [];
    const kind = secretKind(name) ?? secretKind(withoutEntities(quoted ?? bare));
    if (kind === null) continue;
    const end = content.indexOf(CDATA_END);
    const value = (end === -1 ? content : content.slice(0, end)).trim();
    if (value === "" || !masking.hidesNamed(value)) continue;
    const start = index + whole.length - content.length + content.indexOf(value);
    masked.replace(start, start + value.length, masking.hide(value, kind));
  }
  return masked.toString();
}

/** An attribute that may hold what another one names. */
const VALUED = /[\s"'](?:value|val|content)\s{0,8}=/gi;

/** Masks values that another attribute of their element names as secret, in any order: `<input type=password value=…>`. */
function maskAttributes(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  let next = 0;
  for (const { index } of text.matchAll(VALUED)) {
    const tag = index < next ? -1 : text.indexOf("<", Math.max(next, text.lastIndexOf("<", index)));
    if (tag === -1) continue;
    next = indexOrEnd(text, "<", tag + 1);
    const attributes = attributesIn(text.slice(tag, next));
    const kind = attributes.reduce((known: string | null, attribute) => known ?? kindMeantBy(attribute), null);
    for (const { name, start, value } of kind === null ? [] : attributes) {
      const shown = kind !== null && isNamedMember(name) ? masking.hideIn(value, kind) : value;
      if (shown !== value) masked.replace(tag + start, tag + start + value.length, shown);
    }
  }
  return masked.toString();
}

interface Attribute {
  readonly name: string;
  readonly value: string;
  /** Where the value begins. */
  readonly start: number;
}

/** The kind of secret that other attributes hold by this one; null: none. */
function kindMeantBy({ name, value }: Attribute): string | null {
  if (name === "type") return value.toLowerCase() === "password" ? "password" : null;
  const isNaming = isNamingMember(name) || name === "id" || name === "autocomplete";
  return isNaming ? secretKind(withoutEntities(value)) : null;
}

/** What quotes are around a value; JSON that is read without decoding escapes them. */
const ATTRIBUTE_QUOTES = ['"', "'", '\\"'];

/** The attributes of a start tag. One pass: a quote that is never closed is searched for once. */
function attributesIn(tag: string): readonly Attribute[] {
  const found: Attribute[] = [];
  let tagEnd = -1;
  for (let from = 0, sign = tag.indexOf("="); sign !== -1; sign = tag.indexOf("=", from)) {
    let nameEnd = sign;
    while (nameEnd > from && isSpace(tag, nameEnd - 1)) nameEnd -= 1;
    let nameStart = nameEnd;
    while (nameStart > from && !isSpace(tag, nameStart - 1) && !AROUND_NAME.has(tag.charAt(nameStart - 1)))
      nameStart -= 1;
    if (tagEnd < from) tagEnd = indexOrEnd(tag, ">", from);
    if (tagEnd < sign) break;
    let start = sign + 1;
    while (isSpace(tag, start)) start += 1;
    const quote = ATTRIBUTE_QUOTES.find((one) => tag.startsWith(one, start)) ?? "";
    const close = quote === "" ? -1 : tag.indexOf(quote, start + quote.length);
    if (close !== -1) start += quote.length;
    let end = close === -1 ? start : close;
    while (close === -1 && end < tag.length && !isSpace(tag, end) && tag[end] !== ">") end += 1;
    found.push({ name: tag.slice(nameStart, nameEnd).toLowerCase(), value: tag.slice(start, end), start });
    from = Math.max(end, sign + 1);
  }
  return found;
}

const AROUND_NAME: ReadonlySet<string> = new Set(['"', "'", "/"]);

function isSpace(text: string, at: number): boolean {
  return text.charCodeAt(at) <= 0x20;
}
