import { timeAgo, timeUntil } from "../../core/clock.ts";
import { TIME_FORMATS } from "../time-formats.ts";
import { mainPart, make } from "./elements.ts";

const AGES_MS = 20_000;

/** How far this clock is ahead of the server's. */
const aheadMs = Date.now() - Date.parse(mainPart()?.dataset["now"] ?? "");

function nowMs(): number {
  return Date.now() - (Number.isNaN(aheadMs) ? 0 : aheadMs);
}

const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat("en-GB", options);
const full = format({ ...TIME_FORMATS.full, timeZoneName: "short" });
const FORMATS: ReadonlyMap<string, Intl.DateTimeFormat> = new Map([
  ...Object.entries(TIME_FORMATS).map(([name, options]) => [name, format(options)] as const),
  ["full", full],
  ["minutes", format({ ...TIME_FORMATS.minutes, timeZoneName: "short" })],
]);

/** Shows the times of a page in the reader's zone. */
export function prepareTimes(place: ParentNode): void {
  for (const list of document.querySelectorAll("[data-days]")) divideDays(list);
  showTimes(place);
  for (const input of place.querySelectorAll<HTMLInputElement>("input[type=datetime-local]")) toLocal(input);
}

export function keepTimes(): void {
  setInterval(() => showTimes(document), AGES_MS);
  setInterval(() => showTimes(document, "until"), 1_000);
}

function timeWords(as: string, at: Date, agoMs: number): string | undefined {
  if (as === "ago") return timeAgo(agoMs);
  if (as === "until") return timeUntil(-agoMs);
  return FORMATS.get(as)?.format(at);
}

/** Shows times. The tooltip of a relative time is the local time, and of an absolute time how long ago it was. */
function showTimes(place: ParentNode, only: string | null = null): void {
  for (const time of place.querySelectorAll(only === null ? "time[data-time]" : `time[data-time=${only}]`)) {
    const at = new Date(time.getAttribute("datetime") ?? "");
    const agoMs = nowMs() - at.getTime();
    const as = time.getAttribute("data-time") ?? "";
    const words = timeWords(as, at, agoMs);
    if (words !== undefined && time.textContent !== words) time.textContent = words;
    const title = as === "ago" || agoMs < 0 ? full.format(at) : `${timeAgo(agoMs)}, ${full.format(at)}`;
    if (time.getAttribute("title") !== title) time.setAttribute("title", title);
  }
}

/** Puts dividers where the reader's days begin. The page comes with dividers for UTC. */
function divideDays(list: Element): void {
  for (const divider of list.querySelectorAll(".day")) divider.remove();
  let before = new Date(nowMs()).toDateString();
  for (const row of list.querySelectorAll(":scope > :not(.day)")) {
    const text = row.querySelector("time")?.getAttribute("datetime") ?? "";
    const of = new Date(text).toDateString();
    if (of !== before) row.before(dayDivider(row, text));
    before = of;
  }
}

function dayDivider(row: Element, at: string): Element {
  const time = make("time");
  time.setAttribute("datetime", at);
  time.setAttribute("data-time", "weekday");
  const divider = row.matches("tr") ? make("tr", make("th", time)) : make("li", time);
  divider.className = "day";
  const head = divider.querySelector("th");
  head?.setAttribute("scope", "rowgroup");
  head?.setAttribute("colspan", String(row.children.length));
  return divider;
}

/* Time fields come in UTC. With script, they show the reader's zone and send UTC. */

const zoned = new WeakSet<HTMLInputElement>();

function toLocal(input: HTMLInputElement): void {
  const label = input.labels?.[0];
  const name = full.formatToParts(new Date()).find(({ type }) => type === "timeZoneName")?.value ?? "local time";
  if (label !== undefined) label.textContent = label.textContent.replace("(UTC)", `(${name})`);
  if (zoned.has(input)) return;
  zoned.add(input);
  const at = new Date(`${input.value}Z`);
  if (Number.isNaN(at.getTime())) return;
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  input.value = local;
  input.defaultValue = local;
}

export function sendUtc(): void {
  addEventListener("formdata", ({ target, formData }) => {
    const fields = target instanceof HTMLFormElement ? [...target.elements] : [];
    for (const input of fields) {
      if (!(input instanceof HTMLInputElement) || !zoned.has(input)) continue;
      const at = new Date(input.value);
      if (!Number.isNaN(at.getTime())) formData.set(input.name, `${at.toISOString().slice(0, 19)}Z`);
    }
  });
}
