import type { Action, HttpMethod } from "../domain/action.ts";
import { MAIL_PART_BYTES_MAX } from "../domain/limits.ts";
import { sizeWords } from "../domain/size.ts";
import { cutAt } from "./cut.ts";
import { prettyPrint } from "./json-text.ts";
import { shown } from "./shown.ts";

/** A part of a request as a mail shows it. */
export interface MailPart {
  readonly lines: readonly string[];
  /** What is said of a part that was cut; null: it is whole. */
  readonly note: string | null;
}

/** The request of an action for a mail, masked, each part of it bounded. All of it but the method is foreign text. */
export interface MailRequest {
  readonly method: HttpMethod;
  /** In its ASCII form. */
  readonly host: string;
  /** As it is sent, whole. */
  readonly url: string;
  /** One a line; null: there are none. */
  readonly headers: MailPart | null;
  readonly body: MailPart | null;
  /** What kind of body it is, and of which size. */
  readonly bodyKind: string;
}

export function mailRequest(action: Action): MailRequest {
  const { method, host, url, headers, body } = shown(action, "decider");
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return {
    method,
    host,
    url,
    headers: lines.length === 0 ? null : partOf(lines.join("\n")),
    body: body === null ? null : partOf(prettyPrint(body)),
    bodyKind: body === null ? "" : `JSON, ${sizeWords(Buffer.byteLength(body))}`,
  };
}

function partOf(text: string): MailPart {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAIL_PART_BYTES_MAX) return { lines: text.split("\n"), note: null };
  // The decoder leaves out the character that was cut in two.
  const start = new TextDecoder().decode(bytes.subarray(0, MAIL_PART_BYTES_MAX), { stream: true });
  const { shown: beginning, rest } = cutAt(text, start.length);
  return {
    lines: beginning.split("\n"),
    note: `Cut here, after 2 kB. Not in this mail: ${rest}. Read all of it behind the links.`,
  };
}
