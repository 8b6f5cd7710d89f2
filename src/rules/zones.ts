export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

export type Weekday = (typeof WEEKDAYS)[number];

/** What clocks on the wall show. */
export interface WallTime {
  readonly weekday: Weekday;
  readonly hour: number;
  readonly minute: number;
}

/** Whether the name is one of the time zone database. An offset is refused: it knows no daylight saving. */
export function isZone(name: string): boolean {
  if (!NAME.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

const NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;

/** What clocks show in a zone at a time. Throws a RangeError if there is no such zone. */
export function wallTime(at: Date, zone: string): WallTime {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const weekday = parts.get("weekday")?.toLowerCase();
  return {
    weekday: WEEKDAYS.find((one) => one === weekday) ?? "mon",
    hour: Number(parts.get("hour")),
    minute: Number(parts.get("minute")),
  };
}

/** By zone; the time zone database has some 600, and making one takes 20 us. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    formats.set(timeZone, format);
  }
  return format;
}
