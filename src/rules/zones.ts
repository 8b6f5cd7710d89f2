import { MINUTE_MS } from "../core/limits.ts";

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

export type Weekday = (typeof WEEKDAYS)[number];

/** What clocks on the wall show. */
interface WallTime {
  readonly weekday: Weekday;
  readonly hour: number;
  readonly minute: number;
  /** The date there, as its midnight in UTC. */
  readonly date: Date;
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

export const PERIODS = ["hour", "day", "month"] as const;

export type Period = (typeof PERIODS)[number];

/**
 * A number for the hour, day or month of a zone's calendar in which a time lies, in milliseconds and at most a day from its begin.
 * Where clocks are set back, an hour comes twice and each counts by itself; a day has 23 or 25 hours then.
 */
export function periodOf(at: Date, per: Period, zone: string): number {
  const { minute, date } = wallTime(at, zone);
  if (per === "hour") return (Math.floor(at.getTime() / MINUTE_MS) - minute) * MINUTE_MS;
  return per === "day" ? date.getTime() : Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

function shownAt(at: Date, format: Intl.DateTimeFormat): WallTime {
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const weekday = parts.get("weekday")?.toLowerCase();
  const number = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name));
  return {
    weekday: WEEKDAYS.find((one) => one === weekday) ?? "mon",
    hour: number("hour"),
    minute: number("minute"),
    date: new Date(Date.UTC(number("year"), number("month") - 1, number("day"))),
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
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    zone = { format, minute: Number.NaN, shown: { weekday: "mon", hour: 0, minute: 0, date: new Date(0) } };
    zones.set(name, zone);
  }
  return zone;
}
