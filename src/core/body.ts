/** How a body was given, if not as `body`. The column `body` has the JSON, the encoded form, the text or the base64. */
export const BODY_KINDS = ["json", "form", "text", "base64"] as const;

export type BodyKind = (typeof BODY_KINDS)[number];

/** The members of a create and of an action that hold a body. An action has at most one of them. */
export const BODY_MEMBERS = ["body", ...BODY_KINDS] as const;

export type BodyMember = (typeof BODY_MEMBERS)[number];

/** A request's body, and how it was given. */
interface Sent {
  readonly body: string | null;
  readonly extras: { readonly bodyKind?: BodyKind };
}

/** The member in which a body was given; null: there is no body. */
export function usedBodyMember({ body, extras }: Sent): BodyMember | null {
  return body === null ? null : (extras.bodyKind ?? "body");
}

/** The body if it was given as this member, as text; else null. */
export function bodyAs(request: Sent, member: BodyMember): string | null {
  return usedBodyMember(request) === member ? request.body : null;
}

export function isJsonMember(member: BodyMember): member is "body" | "json" {
  return member === "body" || member === "json";
}

/** The media type of a body whose request has no `Content-Type`. */
export const DEFAULT_TYPES: Readonly<Record<BodyMember, string>> = {
  body: "application/json",
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  text: "text/plain; charset=utf-8",
  base64: "application/octet-stream",
};

/** The `Content-Type` that is sent; null: there is no body. */
export function bodyContentType(
  request: Sent & { readonly headers: Readonly<Record<string, string>> | null },
): string | null {
  const member = usedBodyMember(request);
  if (member === null) return null;
  const [, given] = Object.entries(request.headers ?? {}).find(([name]) => name.toLowerCase() === "content-type") ?? [];
  return given ?? DEFAULT_TYPES[member];
}

/** The bytes that are sent; null: there is no body. A text is sent as UTF-8. */
export function sentBody(request: Sent): string | Uint8Array<ArrayBuffer> | null {
  const { body } = request;
  return body === null || request.extras.bodyKind !== "base64" ? body : Buffer.from(body, "base64");
}

export function sentBytes(request: Sent): number {
  const sent = sentBody(request) ?? "";
  return typeof sent === "string" ? Buffer.byteLength(sent) : sent.byteLength;
}

/** The start of a stored answer that is no text. */
export const BASE64_START = '{"encoding":"base64","data":"';

export type FormPair = readonly [name: string, value: string];

/** A form as it is sent: `application/x-www-form-urlencoded`, in the order of the pairs. */
export function encodeForm(pairs: readonly FormPair[]): string {
  return new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value])).toString();
}

/** The pairs of an encoded form, in their order. */
export function formPairs(encoded: string): readonly FormPair[] {
  return [...new URLSearchParams(encoded)];
}

/** An encoded form as the JSON of a member `form`. Built as text, since JavaScript objects reorder names that are numbers. */
export function formJson(encoded: string): string {
  const members = Map.groupBy(formPairs(encoded), ([name]) => name);
  const texts = Array.from(members, ([name, pairs]) => {
    const values = pairs.map(([, value]) => value);
    return `${JSON.stringify(name)}:${JSON.stringify(values.length === 1 ? values[0] : values)}`;
  });
  return `{${texts.join(",")}}`;
}

/** The value of the member that holds the body, as JSON text; null: there is none. */
export function bodyMemberJson(request: Sent): string | null {
  const { body } = request;
  const member = usedBodyMember(request);
  if (body === null || member === null || isJsonMember(member)) return body;
  return member === "form" ? formJson(body) : JSON.stringify(body);
}
