import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const EXECUTABLE = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path));

/** Whether this machine has Firefox; where it has none, its tests are skipped. */
export const HAS_FIREFOX = EXECUTABLE !== undefined;

if (!HAS_FIREFOX) console.log("skipped: there is no Firefox, so nothing was looked at in it");

/** Its first start makes a profile, which takes seconds on a busy machine. */
export const FIREFOX_START_MS_MAX = 90_000;

const CALL_MS_MAX = 30_000;

type Json = Readonly<Record<string, unknown>>;

export type Firefox = Awaited<ReturnType<typeof openFirefox>>;

/** One window of a Firefox of its own, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi), without another program. */
export async function openFirefox() {
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
