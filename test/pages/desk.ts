import { afterAll, afterEach, beforeAll, setDefaultTimeout } from "bun:test";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import {
  BROWSER_START_MS_MAX,
  closeContexts,
  openBrowser,
  type Watched,
  watchPage,
  watchPageIn,
} from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";

type Person = Awaited<ReturnType<typeof signedIn>>;

const NO_TARGET = "http://127.0.0.1:9/";

/** What a page waits for by its clock, such as the second between two updates, takes it a tenth of that. */
const QUICK = "{ const later = setTimeout; window.setTimeout = (run, ms, ...more) => later(run, ms / 10, ...more); }";
/** Resolves when the page has updated itself: to ask again and again took more of a core than the page. */
const UPDATED = `window.updated = new Promise((resolve) => addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.requestConfig.elt.id === "main") resolve();
}));`;

/**
 * A server with Ann logged in to it, and her browser, for the tests of one `describe`. What a test has created is cancelled
 * behind it, so that no other finds it in its lists.
 */
export function useDesk({ height }: { readonly height: number }) {
  // A browser, on a machine that may be busy.
  setDefaultTimeout(60_000);
  let chromium: Browser;
  let app: RealServer;
  let ann: Person;
  /** Ann's browser, for tests that need nothing else of one. */
  let herOwn: BrowserContext;
  let watched: Watched;
  const made: string[] = [];
  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort() });
    ann = await signedIn(app);
    herOwn = await chromium.newContext({ viewport: { width: 1_100, height } });
    await herOwn.addInitScript(QUICK + UPDATED);
    await ann.enter(herOwn);
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await closeContexts(chromium);
    await app[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    await watched[Symbol.asyncDispose]();
    for (const id of made.splice(0)) await app.call("POST", `/v1/actions/${id}/cancel`);
  });

  let count = 0;
  return {
    get app() {
      return app;
    },
    get ann() {
      return ann;
    },
    get page() {
      return watched.page;
    },
    get troubles() {
      return watched.troubles;
    },
    /** Each another request: what was rejected of one is nothing to the others. */
    async created(members: object = {}): Promise<string> {
      count += 1;
      const body = { url: `${NO_TARGET}?n=${count}`, ...members };
      // Newer than every other: the clock stands still, and ids of one millisecond need not be in order.
      app.engine.clock.advance(1);
      const { id } = (await app.call("POST", "/v1/actions", body, KEYS.agent)).json;
      made.push(id);
      return id;
    },
    actionOf: (id: string) => app.engine.get(id),
    /** A page of a browser of its own, in which the person is logged in. */
    async enter(person: Person, options: BrowserContextOptions = {}): Promise<Page> {
      watched = await watchPage(chromium, { viewport: { width: 1_100, height }, ...options });
      const { page } = watched;
      await page.context().addInitScript(QUICK + UPDATED);
      await person.enter(page.context());
      return page;
    },
    /** The page of Ann's own browser, which costs half as much as a browser of its own. */
    async enterHerOwn(viewport = { width: 1_100, height }): Promise<Page> {
      watched = await watchPageIn(herOwn);
      await watched.page.setViewportSize(viewport);
      return watched.page;
    },
    /** Ann's browser at a page of hers, with our policy in force. A page that is loaded anew forgets the mark. */
    async open(path: string, server: RealServer = app, person: Person = ann, how?: "a clock of the test") {
      const isHers = server === app && how === undefined;
      const page = isHers ? await this.enterHerOwn() : await this.enter(person);
      if (how !== undefined) await page.clock.install();
      await page.goto(server.url + path);
      await this.updated(page);
      await page.evaluate("window.mark = 1");
      return page;
    },
    /** Resolves when the update that follows the opening of the stream is over: no other comes of itself. */
    updated: (page: Page) => page.evaluate("window.updated"),
    isSamePage: (page: Page) => page.evaluate("window.mark === 1"),
  };
}

/** The browser of the tests of one `describe`. */
export function useBrowser() {
  // On a machine that may be busy.
  setDefaultTimeout(60_000);
  let chromium: Browser;
  beforeAll(async () => {
    chromium = await openBrowser();
  }, BROWSER_START_MS_MAX);
  afterAll(() => closeContexts(chromium));
  return {
    get chromium() {
      return chromium;
    },
    /** Opens pages in which somebody is logged in, each in a browser of its own. */
    of:
      (person: Person) =>
      async (options: BrowserContextOptions = {}): Promise<Watched> => {
        const watched = await watchPage(chromium, options);
        await person.enter(watched.page.context());
        return watched;
      },
  };
}

interface OpenOptions extends Omit<BrowserContextOptions, "viewport"> {
  readonly viewport?: { readonly width: number; readonly height: number };
}

/** A desk whose requests all await approval, on a screen on which a long one does not fit. */
export function useDecisions() {
  const desk = useDesk({ height: 500 });
  let count = 0;
  return {
    desk,
    /** Each another request: what was rejected of one is nothing to the others. */
    created: ({ body = {}, ...members }: { readonly body?: object; readonly [name: string]: unknown }) => {
      count += 1;
      return desk.created({ url: `${NO_TARGET}v1/messages`, approve: true, ...members, body: { ...body, n: count } });
    },
    openAt: async (
      path: string,
      { viewport = { width: 1_280, height: 500 }, ...others }: OpenOptions = {},
    ): Promise<Page> => {
      const isHers = Object.keys(others).length === 0;
      const page = await (isHers ? desk.enterHerOwn(viewport) : desk.enter(desk.ann, { viewport, ...others }));
      await page.goto(desk.app.url + path);
      return page;
    },
    textOf: (page: Page, selector: string) => page.locator(selector).innerText(),
  };
}
