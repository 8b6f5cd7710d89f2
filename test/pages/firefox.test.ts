import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";

const EXECUTABLE = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path));

/** Whether this machine has Firefox; where it has none, its tests are skipped. */
const HAS_FIREFOX = EXECUTABLE !== undefined;

if (!HAS_FIREFOX) console.log("skipped: there is no Firefox, so nothing was looked at in it");

/** Its first start makes a profile, which takes seconds on a busy machine. */
const FIREFOX_START_MS_MAX = 90_000;

const CALL_MS_MAX = 30_000;

type Json = Readonly<Record<string, unknown>>;

type Firefox = Awaited<ReturnType<typeof openFirefox>>;

/** One window of a Firefox of its own, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi), without another program. */
async function openFirefox() {
  const profile = mkdtempSync(join(tmpdir(), "outgate-firefox-"));
  const child = Bun.spawn(
    [EXECUTABLE ?? "", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"],
    { stdout: "ignore", stderr: "pipe", env: { ...Bun.env, HOME: profile } },
  );
  const close = async () => {
    child.kill();
    await child.exited;
    rmSync(profile, { recursive: true, force: true });
  };
  try {
    const wire = await openWire(`${await addressOf(child.stderr)}/session`);
    await wire.call("session.new", { capabilities: {} });
    await wire.call("session.subscribe", { events: ["log.entryAdded"] });
    const { contexts } = await wire.call("browsingContext.getTree", {});
    const context = Array.isArray(contexts) ? asJson(contexts[0])["context"] : null;
    return {
      /** Errors and warnings of scripts, since the last time they were taken. */
      takeTroubles: wire.takeTroubles,
      async resize(width: number, height: number): Promise<void> {
        await wire.call("browsingContext.setViewport", { context, viewport: { width, height } });
      },
      /** Returns when everything is loaded. */
      async open(url: string): Promise<void> {
        await wire.call("browsingContext.navigate", { context, url, wait: "complete" });
      },
      /** The value of an expression, as JSON. */
      async evaluate(expression: string): Promise<unknown> {
        const { result } = await wire.call("script.evaluate", {
          expression: `(async () => JSON.stringify(await (${expression})))()`,
          target: { context },
          awaitPromise: true,
        });
        return JSON.parse(String(asJson(result)["value"]));
      },
      async setCookie(domain: string, name: string, value: string): Promise<void> {
        const cookie = { domain, name, value: { type: "string", value }, httpOnly: true, path: "/" };
        await wire.call("storage.setCookie", { cookie });
      },
      /** A PNG of what is in view. */
      async screenshot(): Promise<Uint8Array> {
        const { data } = await wire.call("browsingContext.captureScreenshot", { context });
        return Buffer.from(String(data), "base64");
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Where it listens, from what it says at its start. */
async function addressOf(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let said = "";
  for await (const chunk of stderr) {
    said += decoder.decode(chunk, { stream: true });
    const [, address] = /BiDi listening on (ws:\/\/[\w.:]+)/.exec(said) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error(`Firefox did not start: ${said}`);
}

async function openWire(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (answer: Json) => void>();
  const troubles: string[] = [];
  socket.addEventListener("message", ({ data }) => {
    const message = asJson(JSON.parse(String(data)));
    const { level, text } = asJson(message["params"]);
    if (message["method"] === "log.entryAdded" && (level === "error" || level === "warn")) {
      troubles.push(`${level}: ${String(text)}`);
    }
    waiting.get(Number(message["id"]))?.(message);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  let last = 0;
  return {
    takeTroubles: () => troubles.splice(0),
    async call(method: string, params: Json): Promise<Json> {
      last += 1;
      const id = last;
      const { promise, resolve, reject } = Promise.withResolvers<Json>();
      waiting.set(id, resolve);
      const timer = setTimeout(() => reject(new Error(`Firefox did not answer to ${method}.`)), CALL_MS_MAX);
      socket.send(JSON.stringify({ id, method, params }));
      const answer = await promise.finally(() => clearTimeout(timer));
      waiting.delete(id);
      if (answer["type"] === "error") throw new Error(`${method}: ${String(answer["message"])}`);
      return asJson(answer["result"]);
    },
  };
}

function asJson(value: unknown): Json {
  // Safe: an object, whose members are read one by one as unknown.
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

// A browser, on a machine that may be busy.
setDefaultTimeout(120_000);

describe.skipIf(!HAS_FIREFOX)("every page, in Firefox", () => {
  let firefox: Firefox;
  let app: RealServer;
  let paths: readonly string[];
  const target = new Target(503, () => Response.json({ ok: true }));

  beforeAll(async () => {
    firefox = await openFirefox();
    app = await openRealServer({ port: await freePort() });
    const ann = await signedIn(app);
    const [name = "", value = ""] = ann.cookie.split("=");
    await firefox.setCookie("127.0.0.1", name, value);
    const ask = async (members: object) => {
      const request = { url: target.url, notify: { email: "ann@example.com" }, ...members };
      return (await app.call("POST", "/v1/actions", request)).json.id;
    };
    const held = await ask({ approve: true, title: "Refund 12.00 EUR", body: { amount: 1_200, lines: ["a", "b"] } });
    const sent = await ask({});
    await app.engine.saw(sent, { status: "pending", attempts: 1 });
    const receipts = [held, sent].map((id) => app.engine.receiptPath(id));
    const { approve } = await app.linksOf(held);
    const own = "/approvals /actions /overview /keys /settings /settings/people /settings/login /more";
    const docs = "/docs /docs/api /docs/api/createAction /docs/search?q=retry /docs/errors";
    const one = [`/approvals/${held}`, `/actions/${sent}`, approve, ...receipts, "/nothing", "/r/nothing"];
    paths = [...own.split(" "), ...docs.split(" "), ...one];
  }, FIREFOX_START_MS_MAX);
  afterAll(async () => {
    await firefox[Symbol.asyncDispose]();
    await app[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
  });

  const SIZES = [
    { width: 1_280, height: 800 },
    { width: 375, height: 812 },
  ] as const;

  test("opens with one title, its style and no error, and does not scroll sideways, on a phone neither", async () => {
    const seen: object[] = [];
    const expected: object[] = [];
    for (const path of paths) {
      await firefox.resize(1_280, 800);
      await firefox.open(app.url + path);
      for (const { width, height } of SIZES) {
        await firefox.resize(width, height);
        const found = await firefox.evaluate(`{
          isLoggedOut: location.pathname === "/login",
          titles: document.querySelectorAll("h1").length,
          width: innerWidth,
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          isStyled: getComputedStyle(document.body).fontFamily.includes("system-ui"),
        }`);
        seen.push({ path, found, troubles: firefox.takeTroubles() });
        expected.push({
          path,
          found: { isLoggedOut: false, titles: 1, width, overflow: 0, isStyled: true },
          troubles: [],
        });
      }
    }
    expect(seen).toEqual(expected);
  });

  test("finds in the documentation as one types", async () => {
    await firefox.resize(1_280, 800);
    await firefox.open(`${app.url}/docs`);
    const found = await firefox.evaluate(`new Promise((resolve) => {
      const place = document.getElementById("docs-found");
      new MutationObserver(() => resolve(place.querySelectorAll("a").length)).observe(place, { childList: true });
      const field = document.getElementById("search");
      field.value = "idempotency";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    })`);
    expect(found).toBeGreaterThan(2);
    expect(await firefox.evaluate("location.pathname")).toBe("/docs");
  });
});
