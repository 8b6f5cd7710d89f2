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
    zoneOf(name);
    return true;
  } catch {
    return false;
  }
}

const NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;

/** What clocks show in a zone at a time. Throws a RangeError if there is no such zone. */
export function wallTime(at: Date, zone: string): WallTime {
  const known = zoneOf(zone);
  const minute = Math.floor(at.getTime() / MINUTE_MS);
  if (known.minute !== minute) {
    known.minute = minute;
    known.shown = shownAt(at, known.format);
  }
  return known.shown;
}

const MINUTE_MS = 60_000;

function shownAt(at: Date, format: Intl.DateTimeFormat): WallTime {
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const weekday = parts.get("weekday")?.toLowerCase();
  return {
    weekday: WEEKDAYS.find((one) => one === weekday) ?? "mon",
    hour: Number(parts.get("hour")),
    minute: Number(parts.get("minute")),
  };
}

interface Zone {
  readonly format: Intl.DateTimeFormat;
  /** Since 1970, for which `shown` is: a request asks many rules at one time. */
  minute: number;
  shown: WallTime;
}

/** By name; the time zone database has some 600. */
const zones = new Map<string, Zone>();

function zoneOf(name: string): Zone {
  let zone = zones.get(name);
  if (zone === undefined) {
    const format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    zone = { format, minute: Number.NaN, shown: { weekday: "mon", hour: 0, minute: 0 } };
    zones.set(name, zone);
  }
  return zone;
}
