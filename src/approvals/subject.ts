import type { Action } from "../core/action.ts";
import {
  SUBJECT_HOST_CHARS_MAX,
  SUBJECT_ID_CHARS,
  SUBJECT_PATH_CHARS_MAX,
  SUBJECT_TITLE_CHARS_MAX,
} from "../core/limits.ts";
import { visibleText, withoutLinks } from "../receipts/visible-text.ts";

/**
 * `Approve? api.stripe.com · POST /v1/refunds · "Refund order 5999" · qqpjmk`, of a masked action and one of its runs. The end of
 * the id comes last: clients put mails of one subject into one conversation, where a decision could meet the wrong one of two
 * equal requests.
 */
export function subjectOf(
  { id, run: latest, method, host, url, title }: Pick<Action, "id" | "run" | "method" | "host" | "url" | "title">,
  run = latest,
): string {
  // Without the query.
  const [path = ""] = url.slice(url.indexOf("//") + 2 + host.length).split(/[?#]/, 1);
  const quoted =
    title === null || title.trim() === "" ? [] : [`"${beginning(inQuotes(title), SUBJECT_TITLE_CHARS_MAX)}"`];
  const parts = [
    endOfHost(host),
    `${method} ${beginning(visibleText(path), SUBJECT_PATH_CHARS_MAX)}`,
    ...quoted,
    `${id.slice(-SUBJECT_ID_CHARS)}${run === 1 ? "" : `, run ${run}`}`,
  ];
  return `Approve? ${parts.join(" · ")}`;
}

/** What the requester wrote, with nothing in it that ends the quotation, the line, or could become a link. */
function inQuotes(title: string): string {
  return withoutLinks(visibleText(title)).replaceAll(/\p{Quotation_Mark}/gu, "'");
}

function beginning(text: string, charsMax: number): string {
  const characters = Array.from(text);
  return characters.length <= charsMax ? text : `${characters.slice(0, charsMax - 1).join("")}…`;
}

/** The end of a long host, cut before a label: the registered name is at the end. */
export function endOfHost(host: string): string {
  const labels = host.split(".");
  if (host.length <= SUBJECT_HOST_CHARS_MAX || host.startsWith("[")) return host;
  // As in `example.co.uk`: a short label before a country code belongs to the suffix.
  const [name = "", country = ""] = labels.slice(-2);
  let kept = name.length <= 3 && /^[a-z]{2}(?::|$)/.test(country) ? 3 : 2;
  const end = () => labels.slice(-kept).join(".");
  while (kept < labels.length && `${labels.at(-kept - 1)}.${end()}`.length < SUBJECT_HOST_CHARS_MAX) kept += 1;
  return kept >= labels.length ? host : `…${end()}`;
}
