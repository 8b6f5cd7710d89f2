import type { Action } from "./action.ts";
import { SUBJECT_HOST_CHARS_MAX } from "./limits.ts";

/** The end of a host that is too long for a line, cut in front of a name of it: what is registered stands at the end. */
export function endOfHost(host: string): string {
  const labels = host.split(".");
  if (host.length <= SUBJECT_HOST_CHARS_MAX || host.startsWith("[")) return host;
  // As in `example.co.uk`: a short name before a country belongs to the suffix.
  const [name = "", country = ""] = labels.slice(-2);
  let kept = name.length <= 3 && /^[a-z]{2}(?::|$)/.test(country) ? 3 : 2;
  const end = () => labels.slice(-kept).join(".");
  while (kept < labels.length && `${labels.at(-kept - 1)}.${end()}`.length < SUBJECT_HOST_CHARS_MAX) kept += 1;
  return kept >= labels.length ? host : `…${end()}`;
}

/** The verb first, then method and host; the path, without its query, as far as the line goes. */
export function subjectOf({ method, host }: Pick<Action, "method" | "host">, path: string, charsMax: number): string {
  const start = `Approve? ${method} ${endOfHost(host)}`;
  const room = Math.max(charsMax - Array.from(start).length, 0);
  const characters = Array.from(path);
  if (characters.length <= room) return start + path;
  return room === 0 ? start : `${start}${characters.slice(0, room - 1).join("")}…`;
}
