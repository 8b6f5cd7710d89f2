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

/** Elements of HTML whose `id` says where they are, not what their words hold, as in `<h2 id="access-token">Access tokens</h2>`. */
const TITLES = /^(?:a|button|caption|dt|h[1-6]|label|legend|summary|th)$/i;

const CDATA_END = "]]>";

/** Masks XML elements with the name of a secret in any text, as in `<wsse:Password>…</wsse:Password>`. */
function maskElements(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  for (const { 0: whole, 1: name = "", 2: attributes = "", 3: content = "", index } of text.matchAll(ELEMENT)) {
    const kind = secretKind(name) ?? (attributes === "" ? null : kindOfContent(name, attributes));
    if (kind === null) continue;
    const end = content.indexOf(CDATA_END);
    const value = (end === -1 ? content : content.slice(0, end)).trim();
    if (value === "" || !masking.hidesNamed(value)) continue;
    const start = index + whole.length - content.length + content.indexOf(value);
    masked.replace(start, start + value.length, masking.hide(value, kind));
  }
  return masked.toString();
}

/** What the attributes say of the text: `<entry key="password">`, `<string id="7" name="api_key">`, `<textarea name=password>`. */
function kindOfContent(element: string, attributes: string): string | null {
  const isNaming = ({ name }: Attribute) =>
    name === "name" || name === "key" || (name === "id" && !TITLES.test(element));
  return kindNamedIn(attributesIn(attributes).filter(isNaming));
}

/** An attribute that may hold what another one names. */
const VALUED = /[\0-\x20"'/](?:(?:string|parameter)?value|val|content)[\0-\x20]*=/gi;

/** Masks values that another attribute of their element names as secret, in any order: `<input type=password value=…>`. */
function maskAttributes(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  let next = 0;
  for (const { index } of text.matchAll(VALUED)) {
    const tag = index < next ? -1 : text.indexOf("<", Math.max(next, text.lastIndexOf("<", index)));
    if (tag === -1) continue;
    next = indexOrEnd(text, "<", tag + 1);
    const attributes = attributesIn(text.slice(tag, next));
    const kind = kindNamedIn(attributes);
    for (const { name, start, value } of kind === null ? [] : attributes) {
      const shown = kind !== null && isNamedMember(name) ? masking.hideIn(value, kind) : value;
      if (shown !== value) masked.replace(tag + start, tag + start + value.length, shown);
    }
  }
  return masked.toString();
}

/**
 * Tells whether the `=` at a position is of an attribute of a tag with a name and a value, which have nothing to do with those of
 * other tags. Ask for the positions in order.
 */
export function ownAttributesIn(text: string): (sign: number) => boolean {
  let [tag, nextTag] = [0, 0];
  let signs: ReadonlySet<number> | null = null;
  return (sign) => {
    if (nextTag <= sign) signs = null;
    while (nextTag <= sign) [tag, nextTag] = [nextTag, indexOrEnd(text, "<", nextTag + 1)];
    signs ??= signsOfOwnAttributes(text.slice(tag, nextTag));
    return signs.has(sign - tag);
  };
}

/**
 * Where the `=` of each attribute is, if the tag holds a name and a value of its own, which `maskMarkup` reads in any order.
 * Else none: the value may be in an element inside of it.
 */
function signsOfOwnAttributes(tag: string): ReadonlySet<number> {
  const attributes = TAG_START.test(tag) ? attributesIn(tag) : [];
  const isWhole =
    attributes.some(({ name }) => isNamingMember(name)) && attributes.some(({ name }) => isNamedMember(name));
  return new Set(isWhole ? attributes.map(({ sign }) => sign) : []);
}

const TAG_START = /^<[A-Za-z][\w:.-]{0,255}[\s/]/;

interface Attribute {
  readonly name: string;
  readonly sign: number;
  readonly value: string;
  /** Where the value begins. */
  readonly start: number;
}

/** The kind of secret that an element holds by the first of its attributes that names one; null: none. */
function kindNamedIn(attributes: readonly Attribute[]): string | null {
  for (const { name, value } of attributes) {
    if (name === "type" && value.toLowerCase() === "password") return "password";
    const isNaming = isNamingMember(name) || name === "id" || name === "autocomplete";
    const kind = isNaming ? secretKind(withoutEntities(value)) : null;
    if (kind !== null) return kind;
  }
  return null;
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
    found.push({ name: tag.slice(nameStart, nameEnd).toLowerCase(), sign, value: tag.slice(start, end), start });
    from = Math.max(end, sign + 1);
  }
  return found;
}

const AROUND_NAME: ReadonlySet<string> = new Set(['"', "'", "/"]);

function isSpace(text: string, at: number): boolean {
  return text.charCodeAt(at) <= 0x20;
}
