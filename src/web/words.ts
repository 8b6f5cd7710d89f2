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
