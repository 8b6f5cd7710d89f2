import { join } from "node:path";
import type { Page } from "playwright-core";
import { createClient } from "../src/client/client.ts";
import type { ActionJson } from "../src/api/action-schemas.ts";
import type { OutgateClient } from "../src/client/client.ts";
import { openBrowser } from "../test/support/browser.ts";
import { freePort } from "../test/support/free-port.ts";

// bun scripts/screenshots.ts: takes the pictures of docs/screenshots from the day that `outgate demo` plays.

const ROOT = join(import.meta.dir, "..");
const FOLDER = join(ROOT, "docs/screenshots");

const port = await freePort();
const demo = Bun.spawn([process.execPath, join(ROOT, "src/cli/main.ts"), "demo", "--port", String(port)], {
  stdout: "pipe",
  stderr: "inherit",
});
try {
  const said = await playedBy(demo.stdout);
  const url = `http://localhost:${port}`;
  const client = createClient({ url, apiKey: /og_\w+/.exec(said)?.[0] ?? "" });
  const paths = await pagePaths(client);
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 }, colorScheme: "light" });
    await logIn(page, url, /Password +(\S+)/.exec(said)?.[1] ?? "");
    for (const [name, path] of Object.entries(paths)) await take(page, `${url}${path}`, name);
  } finally {
    await browser.close();
  }
} finally {
  demo.kill("SIGINT");
  await demo.exited;
}

/** What the demo prints until its day is over. */
async function playedBy(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("Ctrl-C ends the demo")) return text;
  }
  throw new Error(`The demo ended: ${text}`);
}

async function pagePaths(client: OutgateClient): Promise<Readonly<Record<string, string>>> {
  const actions = await Array.fromAsync(client.actions());
  const findId = (what: string, isIt: (action: ActionJson) => boolean) => {
    const found = actions.find(isIt);
    if (found === undefined) throw new Error(`The day has no ${what}.`);
    return found.id;
  };
  const isRefund = ({ url }: ActionJson) => url.endsWith("/v1/refunds");
  const held = findId("refund that was rejected before", (one) => {
    return isRefund(one) && one.status === "awaiting_approval" && one.metadata?.["order"] === "5977";
  });
  const failed = findId("failed refund", (one) => isRefund(one) && one.status === "failed");
  return {
    approvals: `/approvals/${held}`,
    action: `/actions/${failed}`,
  };
}

async function logIn(page: Page, url: string, password: string): Promise<void> {
  await page.goto(`${url}/login`);
  await page.getByLabel("Email").fill("dana@acme.example");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(/\/approvals/);
}

async function take(page: Page, address: string, name: string): Promise<void> {
  await page.goto(address);
  // What a page loads after its text, and its last movement.
  await page.waitForTimeout(500);
  const file = join(FOLDER, `${name}.png`);
  await page.screenshot({ path: file });
  console.log(`${name}.png  ${Math.round(Bun.file(file).size / 1_024)} kB`);
}
