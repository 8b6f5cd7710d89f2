import { existsSync } from "node:fs";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type ConsoleMessage,
  type Dialog,
  type Page,
  type Request,
} from "playwright-core";
import { IS_LONG } from "./long.ts";

/** Debian's Chromium. Without windows of its own it needs half the processor time. */
const EXECUTABLES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const EXECUTABLE = EXECUTABLES.find((path) => existsSync(path));

/** Whether this machine has the browser; where it has none, its tests are skipped. */
export const HAS_BROWSER = EXECUTABLE !== undefined;

if (!HAS_BROWSER)
  console.log(`skipped: there is no ${EXECUTABLES.join(" or ")}, so nothing was looked at in a browser`);

/** A hook that starts a browser may take so long on a busy machine. */
export const BROWSER_START_MS_MAX = 60_000;

let launched: Promise<Browser> | null = null;

/**
 * The real browser of this process, that calls nobody by itself. The files of a worker share it, each test in contexts of its
 * own; it reads a pipe of this process, and ends with it.
 */
export function openBrowser(): Promise<Browser> {
  launched ??= launch().catch((error: unknown) => {
    // The next file of the worker tries anew.
    launched = null;
    throw error;
  });
  return launched;
}

/** Closes what a file opened in the browser; the next file finds it as new. */
export async function closeContexts(browser: Browser): Promise<void> {
  if (process.env["TEST_PROGRAMS"] === undefined) {
    launched = null;
    return browser.close();
  }
  await Promise.all(browser.contexts().map((context) => context.close()));
}

async function launch(): Promise<Browser> {
  // Playwright deletes the browser's folder when the browser is closed, and a worker of `npm test` closes nothing at its end: in
  // this folder it goes with the programs of the tests.
  const before = process.env["TMPDIR"];
  const programs = process.env["TEST_PROGRAMS"];
  // What is set to `undefined` would be the text of that name.
  if (programs !== undefined) process.env["TMPDIR"] = programs;
  try {
    return await chromium.launch({
      ...(EXECUTABLE !== undefined && { executablePath: EXECUTABLE }),
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
      env: { ...process.env, TMPDIR: before ?? "/tmp" },
    });
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

export interface PageOptions {
  readonly width?: number;
  readonly isDark?: boolean;
  /** Off unless it is said: what people need works without. */
  readonly scripts?: boolean;
}

/** A page of a person of their own: nobody else's cookies are there. */
export async function openPage(browser: Browser, { width = 1_280, isDark = false, scripts = false }: PageOptions = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: isDark ? "dark" : "light",
    javaScriptEnabled: scripts,
    // An audit is put into the page; the policy itself has tests of its own.
    bypassCSP: scripts,
  });
  return context.newPage();
}

/** How far the page can be scrolled sideways, in pixels. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** How high each of them is that can be seen, in pixels. */
export function heightsOf(page: Page, selector: string): Promise<readonly number[]> {
  const all = `[...document.querySelectorAll(${JSON.stringify(selector)})]`;
  return page.evaluate(
    `${all}.map((element) => element.getBoundingClientRect().height).filter((height) => height > 0)`,
  );
}

const AXE = Bun.file(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url));

/** The rules that colours and sizes decide: enough for a page in the dark, or narrow, that was audited whole before. */
const RULES_OF_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable"];

/** What axe-core finds wrong with a page for those who can't see or point, rule by rule. */
export async function barriersOf(page: Page, rules: "all" | "of looks" = "all"): Promise<readonly string[]> {
  await page.evaluate(await AXE.text());
  // All rules but those of style sheets by themselves and of media, for which it would load everything anew.
  const options = {
    preload: false,
    resultTypes: ["violations"],
    ...(rules === "of looks" && !IS_LONG ? { runOnly: RULES_OF_LOOKS } : {}),
  };
  return page.evaluate(
    `axe.run(${JSON.stringify(options)})
      .then(({ violations }) => violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html).join(' ')))`,
  );
}

/** The first is told of the request of a page that was left; the second beside every other error of a request. */
const LEFT = ["htmx:sendAbort", "htmx:afterRequest"];

/** A page, and what went wrong on it: errors, refusals of its policy, dialogs, requests to anywhere else. */
export interface Watched extends AsyncDisposable {
  readonly page: Page;
  readonly troubles: readonly string[];
}

/** A page that runs scripts unless it is said otherwise, with nobody else's cookies. */
export async function watchPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext(options);
  return { ...(await watchPageIn(context)), [Symbol.asyncDispose]: () => context.close() };
}

/** The page of a context that no test has open now. */
const idle = new WeakMap<BrowserContext, Page>();

/**
 * A page in a context that the caller closes: of the same person. It is the one that was disposed of last:
 * a new page takes a process of the browser, and half of the browser's time for a test. What a test adds to the page for
 * good (`addInitScript`, its clock) needs `watchPage`.
 */
export async function watchPageIn(context: BrowserContext): Promise<Watched> {
  const left = idle.get(context);
  idle.delete(context);
  const page = left ?? (await context.newPage());
  const size = page.viewportSize();
  const troubles: string[] = [];
  const told = (message: ConsoleMessage) => {
    const text = message.text();
    const { url } = message.location();
    // htmx tells of a request that ended because its page was left.
    if (LEFT.some((event) => text.startsWith(event))) return;
    // Each of our pages names its icon. /health, where a page waits for its next test, has none, and the answer may come late.
    if (url.endsWith("/favicon.ico")) return;
    troubles.push(`console: ${text}${url === "" ? "" : ` (${url})`}`);
  };
  const failed = (error: Error) => void troubles.push(`error: ${error.message}`);
  const asked = (dialog: Dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  };
  const requested = (request: Request) => {
    const { hostname, protocol } = new URL(request.url());
    if (hostname !== "127.0.0.1" && protocol !== "data:") troubles.push(`request: ${request.url()}`);
  };
  page.on("console", told).on("pageerror", failed).on("dialog", asked).on("request", requested);
  let isLeft = false;
  return {
    page,
    troubles,
    async [Symbol.asyncDispose]() {
      if (isLeft || page.isClosed()) return;
      isLeft = true;
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.mouse.move(0, 0);
      // Of the same server: for another one, and for an empty page, Chromium starts a process. It may have ended by now.
      await page.goto(new URL("/health", page.url()).href).catch(() => page.goto("about:blank"));
      if (size !== null) await page.setViewportSize(size);
      page.off("console", told).off("pageerror", failed).off("dialog", asked).off("request", requested);
      if (idle.has(context)) await page.close();
      else idle.set(context, page);
    },
  };
}
