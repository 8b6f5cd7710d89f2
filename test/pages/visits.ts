import type { Page } from "playwright-core";
import { barriersOf } from "../support/browser.ts";

/** What is folded away is a part of the page, too. */
export async function openFolds(page: Page): Promise<void> {
  await page.evaluate(
    "for (const fold of document.querySelectorAll('details')) { fold.removeAttribute('name'); fold.open = true; }",
  );
}

/** What stands in the way of some readers, by daylight and in the dark: loaded once, since only colours are others. */
export async function barriersInBoth(page: Page): Promise<{ readonly light: Barriers; readonly dark: Barriers }> {
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  await openFolds(page);
  const light = await barriersOf(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await endTransitions(page);
  return { light, dark: await barriersOf(page, "of looks") };
}

type Barriers = readonly string[];

/** What a colour is on its way from one to another is nobody's choice. */
async function endTransitions(page: Page): Promise<void> {
  await page.evaluate("for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish()");
}

/** What a page is on paper. */
export interface Printed {
  /** Buttons and navigation that are printed. */
  readonly buttons: number;
  /** Rows of lists that are not. */
  readonly lost: number;
  /** Texts that end at the edge of their window. */
  readonly cut: number;
  /** Cards with a title and nothing below it. */
  readonly bare: readonly string[];
  /** Whether it has other colours where the screen is dark. */
  readonly isDark: boolean;
}

/** Prints the page as it is now, by a light screen and by a dark one. */
export async function printedOf(page: Page): Promise<Printed> {
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await endTransitions(page);
  const buttons = await page.locator("button:visible, nav:visible").count();
  const seen = await page.evaluate<Pick<Printed, "lost" | "cut" | "bare">>(PRINTED);
  const light = await page.evaluate(INKS);
  await page.emulateMedia({ colorScheme: "dark" });
  await endTransitions(page);
  return { buttons, ...seen, isDark: !Bun.deepEquals(await page.evaluate(INKS), light) };
}

const PRINTED = `({
  lost: [...document.querySelectorAll(".actions tr[id], .data tbody tr")].filter((row) => !row.checkVisibility()).length,
  cut: [...document.querySelectorAll("pre")].filter((pre) => pre.scrollHeight > pre.clientHeight + 2).length,
  bare: [...document.querySelectorAll("section.card")]
    .filter((card) => card.checkVisibility() && card.innerText.trim() === card.querySelector("h2")?.innerText.trim())
    .map((card) => card.innerText),
})`;

const INKS = `["html", ".card", ".code", ".quiet", "h1"].flatMap((name) => {
  const part = document.querySelector(name);
  if (part === null) return [];
  const { color, backgroundColor, colorScheme } = getComputedStyle(part);
  return [[name, color, backgroundColor, colorScheme]];
})`;
