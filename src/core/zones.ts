import { MINUTE_MS } from "./limits.ts";

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

export type Weekday = (typeof WEEKDAYS)[number];

/** What local clocks show. */
interface WallTime {
  readonly weekday: Weekday;
  readonly hour: number;
  readonly minute: number;
  /** The local date, as midnight in UTC. */
  readonly date: Date;
}

/** Whether the name is in the time zone database. Offsets are refused, since they have no daylight saving. */
export function isZone(name: string): boolean {
  if (!NAME.test(name)) return false;
  try {
    findZone(name);
    return true;
  } catch {
    return false;
  }
}

export const NO_ZONE = "Must be a name in the time zone database, like Europe/Berlin.";

const NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;

/** What clocks show in a zone at a time. Throws a RangeError if there is no such zone. */
export function wallTime(at: Date, name: string): WallTime {
  const zone = findZone(name);
  const minute = Math.floor(at.getTime() / MINUTE_MS);
  if (zone.minute !== minute) {
    zone.minute = minute;
    zone.shown = shownAt(at, zone.format);
  }
  return zone.shown;
}

export const PERIODS = ["hour", "day", "month"] as const;

export type Period = (typeof PERIODS)[number];

/**
 * A number for the hour, day or month of a zone's calendar that a time is in: in milliseconds, at most a day from its start.
 * When clocks are set back, an hour comes twice, and each counts separately; days with a change have 23 or 25 hours.
 */
export function periodAt(at: Date, per: Period, zone: string): number {
  const { minute, date } = wallTime(at, zone);
  if (per === "hour") return (Math.floor(at.getTime() / MINUTE_MS) - minute) * MINUTE_MS;
  return per === "day" ? date.getTime() : Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** A time of day by a zone's clocks, on the days on which it begins; absent: every day. */
interface DailyWindow {
  readonly from: string;
  /** If it is before `from`, it is on the next day. */
  readonly to: string;
  readonly days?: readonly Weekday[];
  readonly timezone: string;
}

/** Tells whether local clocks show a time in the window, even on days when they change. */
export function windowCheck({ from, to, days = WEEKDAYS, timezone }: DailyWindow): (now: Date) => boolean {
  const [begin, end] = [parseMinute(from), parseMinute(to)];
  return (now) => {
    const { weekday, hour, minute } = wallTime(now, timezone);
    const at = hour * 60 + minute;
    if (begin < end) return days.includes(weekday) && begin <= at && at < end;
    const dayBefore = WEEKDAYS.at(WEEKDAYS.indexOf(weekday) - 1) ?? weekday;
    return (days.includes(weekday) && begin <= at) || (days.includes(dayBefore) && at < end);
  };
}

/** The minutes since midnight of a time such as `18:00`. */
function parseMinute(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

function shownAt(at: Date, format: Intl.DateTimeFormat): WallTime {
  const numbers = format.formatToParts(at).filter(({ type }) => type !== "literal");
  const [month = 1, day = 1, year = 0, hour = 0, minute = 0] = numbers.map(({ value }) => Number(value));
  const date = new Date(Date.UTC(year, month - 1, day));
  return { weekday: WEEKDAYS.at(date.getUTCDay() - 1) ?? "mon", hour, minute, date };
}

interface Zone {
  readonly format: Intl.DateTimeFormat;
  /** The minute since 1970 for which `shown` was computed: for one request, many rules ask at the same time. */
  minute: number;
  shown: WallTime;
}

/** Zones by name in lower case. The time zone database has about 600. */
const zones = new Map<string, Zone>();

function findZone(name: string): Zone {
  const known = zones.get(name.toLowerCase());
  if (known !== undefined) return known;
  const [numeric, twoDigits] = ["numeric", "2-digit"] as const;
  const date = { year: numeric, month: twoDigits, day: twoDigits };
  const time = { hour: twoDigits, minute: twoDigits, hourCycle: "h23" } as const;
  const format = new Intl.DateTimeFormat("en-US", { timeZone: name, ...date, ...time });
  const zone = { format, minute: Number.NaN, shown: shownAt(new Date(0), format) };
  zones.set(name.toLowerCase(), zone);
  return zone;
}
