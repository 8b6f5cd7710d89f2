/** Who decided, and by which way they came in: what follows the first colon is a name that somebody chose. */
export function actorWords(actor: string): { readonly name: string; readonly way: string } {
  const colon = actor.indexOf(":");
  const name = actor.slice(colon + 1);
  const way = WAYS[actor.slice(0, Math.max(0, colon))];
  return way === undefined ? { name: "Outgate", way: "by its settings" } : { name, way };
}

const WAYS: Readonly<Record<string, string>> = {
  email: "by the link in the mail",
  user: "on the pages of Outgate",
  key: "over the API",
  mcp: "over MCP",
};

/** What a mail is called, by its event. */
export function mailName(event: string): string {
  return event === "decided" ? "Mail about the decision" : "Approval mail";
}

/** A duration as people say it. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${trimmed(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${trimmed(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${trimmed(ms / 3_600_000)} h`;
  const days = trimmed(ms / 86_400_000);
  return days === "1" ? "1 day" : `${days} days`;
}

/** How long ago something was, in whole units. */
export function agoWords(ms: number): string {
  const unit = UNITS.find(({ unitMs }) => ms >= unitMs);
  return unit === undefined ? "just now" : `${counted(Math.floor(ms / unit.unitMs), unit.word)} ago`;
}

const UNITS = [
  { unitMs: 86_400_000, word: "day" },
  { unitMs: 3_600_000, word: "hour" },
  { unitMs: 60_000, word: "minute" },
] as const;

/** A size as people say it; of text, in UTF-8. */
export function sizeOf(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return bytes < 1_000_000 ? `${trimmed(bytes / 1_000)} kB` : `${trimmed(bytes / 1_000_000)} MB`;
}

/** 12,345 */
export function number(value: number): string {
  return value.toLocaleString("en-GB");
}

/** "1 attempt", "2 attempts". */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** One figure behind the point at most, and none that is 0. */
function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}
