const DATE = { day: "numeric", month: "short" } as const;

const LONG_DATE = { ...DATE, year: "numeric" } as const;

const MINUTES = { hour: "2-digit", minute: "2-digit" } as const;

const TIME = { ...MINUTES, second: "2-digit" } as const;

/** The forms of a time, which the server writes in UTC and the script in the reader's time zone. */
export const TIME_FORMATS = {
  full: { ...LONG_DATE, ...TIME },
  minutes: { ...LONG_DATE, ...MINUTES },
  short: { ...DATE, ...MINUTES },
  day: LONG_DATE,
  weekday: { ...LONG_DATE, weekday: "short" },
  date: DATE,
  clock: TIME,
  minute: MINUTES,
} as const;
