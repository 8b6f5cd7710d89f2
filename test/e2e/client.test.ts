import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { saidBy } from "../cli/outgate.ts";
import { buildPrograms } from "../../scripts/build/package.ts";
import { BROWSER_START_MS_MAX, HAS_BROWSER, closeContexts, openBrowser, openPage } from "../support/browser.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { shared, sharedFolder } from "../support/shared.ts";

// Processes and a browser, on a machine that may be busy.
setDefaultTimeout(BROWSER_START_MS_MAX);

const ROOT = join(import.meta.dir, "../..");

const GUIDE = await Bun.file(join(ROOT, "docs/client.md")).text();

const blocks = (language: string) =>
  [...GUIDE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, text = ""]) => text);

const folder = sharedFolder();

await buildPrograms(folder);
const service = await shared(new Service({ env: { RETRY_BASE_MS: "1" } }));
const url = await service.ready();
const target = await shared(new Target(() => Response.json({ ok: true })));
const ran = async (command: readonly string[], more: Readonly<Record<string, string>> = {}) => {
  const env = { PATH: process.env["PATH"], OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, ...more };
  return saidBy(Bun.spawn([...command], { env, stdout: "pipe", stderr: "pipe" }));
};

test("the guide's code runs on Node as it is written", async () => {
  const text = blocks("js").join("\n").replaceAll("https://api.example.com/orders", target.url);
  // The stream needs something to tell of.
  const program = text
    .replace('from "outgate"', `from ${JSON.stringify(join(folder, "client.js"))}`)
    .replace('onOpen: () => console.log("open")', "onOpen: () => void outgate.create({ url: process.env.TARGET })");
  expect(program).not.toBe(text);
  await Bun.write(join(folder, "guide.mjs"), program);
  const { code, out, err } = await ran(["node", join(folder, "guide.mjs")], { TARGET: target.url });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const [created, done, event, refused] = out.trim().split("\n");
  expect(created).toMatch(/^act_\w+ pending$/);
  expect(done).toBe("200 { ok: true }");
  expect(event).toMatch(/^action\.pending act_/);
  expect(refused).toStartWith("invalid_url No call may go to this URL.");
});

test("an export that its reader leaves ends with the reader's own reason, on Node too", async () => {
  const program = `
    import { createClient } from ${JSON.stringify(join(folder, "client.js"))};
    const outgate = createClient({ url: process.env.OUTGATE_URL, apiKey: process.env.OUTGATE_API_KEY });
    const enough = new AbortController();
    try {
      for await (const _ of outgate.exportActions({}, { signal: enough.signal })) enough.abort(new Error("It is enough."));
    } catch (error) {
      console.log(error.message);
    }`;
  await Bun.write(join(folder, "leave.mjs"), program);
  expect(await ran(["node", join(folder, "leave.mjs")])).toEqual({ code: 0, out: "It is enough.\n", err: "" });
});

test.skipIf(!HAS_BROWSER)("a page of the same origin loads the client in a browser", async () => {
  const browser = await openBrowser();
  try {
    const page = await openPage(browser, { scripts: true });
    await page.goto(`${url}/health`);
    const client = await Bun.file(join(folder, "client.js")).text();
    const source = `data:text/javascript;base64,${Buffer.from(client).toString("base64")}`;
    const seen: unknown = await page.evaluate(`(async () => {
      const { createClient, verify } = await import(${JSON.stringify(source)});
      const outgate = createClient({ url: location.origin, apiKey: ${JSON.stringify(OWNER_KEY)} });
      const { id } = await outgate.create({ url: ${JSON.stringify(target.url)} });
      const { status } = await outgate.waitFor(id);
      const refused = await outgate.getAction("act_nobody").catch((error) => error.code);
      let unsigned = "";
      try { verify("whsec_AAAA", { headers: {}, body: "" }) } catch (error) { unsigned = error.code }
      return [status, refused, unsigned];
    })()`);
    expect(seen).toEqual(["completed", "not_found", "invalid_signature"]);
  } finally {
    await closeContexts(browser);
  }
});

/** A Python with httpx, installed at the first run; null where there is none. */
async function pythonWithHttpx(): Promise<string | null> {
  const place = join(homedir(), ".cache/outgate-tests/python");
  const python = join(place, "bin/python");
  const has = async () => (await ran([python, "-c", "import httpx"]).catch(() => null))?.code === 0;
  if (await has()) return python;
  if (Bun.which("python3") === null) return null;
  mkdirSync(place, { recursive: true });
  if ((await ran(["python3", "-m", "venv", place])).code !== 0) return null;
  // A mirror of packages may be set in the environment.
  const pip = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith("PIP_") || name === "HOME" ? [[name, value ?? ""] as const] : [],
  );
  await ran(
    [python, "-m", "pip", "install", "--quiet", "--retries=1", "--timeout=10", "httpx==0.28.1"],
    Object.fromEntries(pip),
  );
  return (await has()) ? python : null;
}

const python = await pythonWithHttpx();
if (python === null) console.log("skipped: there is no Python with httpx, so examples/send.py was not run");

test.skipIf(python === null)("examples/send.py has something done once, and tells how it went", async () => {
  const program = [python ?? "", join(ROOT, "examples/send.py")];
  await using flaky = new Target(500, () => Response.json({ done: true }));
  expect(await ran([...program, flaky.url, "order-1"])).toEqual({ code: 0, out: "completed 200 None\n", err: "" });
  expect(await ran([...program, flaky.url, "order-1"])).toEqual({ code: 0, out: "completed 200 None\n", err: "" });
  expect(flaky.received).toHaveLength(2);
  const refused = await ran([...program, "ftp://a.example/", "order-2"]);
  expect(refused.code).toBe(1);
  expect(refused.err).toStartWith("invalid_url: ");
});

test("the guide shows examples/send.py", async () => {
  const example = await Bun.file(join(ROOT, "examples/send.py")).text();
  expect(example).toEndWith(blocks("python")[0] ?? "nothing");
});
