import { afterAll, beforeAll, expect, setDefaultTimeout } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { begin, post } from "../mcp/wire.ts";
import { BROWSER_START_MS_MAX, closeContexts, HAS_BROWSER, openBrowser, watchPage } from "../support/browser.ts";
import { hiddenIn } from "../support/forms.ts";
import { freePort } from "../support/free-port.ts";
import { Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import {
  ANN,
  type Attack,
  hostOf,
  linksIn,
  PASSWORD,
  type Scene,
  testAttacks,
  textOf,
  welcomeLinkOf,
  type World,
} from "./attack-world.ts";

// Programs and a browser, on a machine that may be busy.
setDefaultTimeout(60_000);

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const HUNTER = "hunter2-canary";
const YES = { action: "accept", content: { decision: "approve" } } as const;
const ELICITS = { elicitation: {} } as const;

let browser: Browser;
beforeAll(async () => {
  if (HAS_BROWSER) browser = await openBrowser();
}, BROWSER_START_MS_MAX);
afterAll(async () => {
  if (HAS_BROWSER) await closeContexts(browser);
});

const mcpOf = ({ base }: World) => `${base}/mcp`;
const keyOf = ({ keys }: World, name = "agent") => keys[name] ?? "";

/** A call whose answer is a stream that stays open while its question waits. Tells the id of the question. */
async function askLegacy(w: World, session: string, id: string) {
  const answer = await fetch(mcpOf(w), {
    method: "POST",
    headers: {
      authorization: `Bearer ${keyOf(w)}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": session,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 7,
      method: "tools/call",
      params: { name: "approve", arguments: { id } },
    }),
  });
  let seen = "";
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader !== undefined && !/elicitation\/create[^]*\n\n|"structuredContent"|"isError"/.test(seen)) {
    const { done, value } = await reader.read();
    if (done) break;
    seen += value;
  }
  const question = /"method":"elicitation\/create"/.test(seen) ? (/"id":(\d+|"[^"]+")/.exec(seen)?.[1] ?? null) : null;
  expect(question === null).toBe(w.mode === "A");
  return { question: question ?? "0", leave: () => reader?.cancel() };
}

const answerTo = (question: string) => `{"jsonrpc":"2.0","id":${question},"result":${JSON.stringify(YES)}}`;

async function logIn(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/login`);
  await page.getByLabel("Email").fill(ANN);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/approvals");
}

/** A page of the agent that sends forms to wherever it likes, as soon as it is looked at. */
const SENDS = (action: string, fields: object) => `(() => {
  const form = Object.assign(document.createElement("form"), { method: "post", action: ${JSON.stringify(action)} });
  for (const [name, value] of Object.entries(${JSON.stringify(fields)})) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  document.body.append(form);
  form.submit();
})()`;

const previews = () => new Response("<h1>Preview</h1>", { headers: { "content-type": "text/html" } });

/** What whoever decides reads of a request: mail, link page, page for several at once, page of the inbox. */
async function placesOf({ w }: Scene, id: string): Promise<Readonly<Record<string, string>>> {
  const mail = await w.mailOf(id);
  const [approve] = linksIn(mail);
  return {
    mail: mail.fields["text"] ?? "",
    link: textOf((await w.ask("GET", approve)).text),
    review: textOf(await w.page(`/approvals/review?id=${id}`)),
    held: textOf(await w.page(`/approvals/${id}`)),
  };
}

const MCP_ATTACKS: readonly Attack[] = [
  {
    name: "An answer is posted into a session where no question is open",
    async run({ w, url }) {
      const id = await w.askable(url);
      const { id: session } = await begin(mcpOf(w), { key: keyOf(w), capabilities: ELICITS });
      for (const question of ["0", "1", "2", '"0"', "-1"]) {
        await post(mcpOf(w), answerTo(question), { key: keyOf(w), headers: { "mcp-session-id": session } });
      }
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "An open question is answered from another session, from no session and by another key",
    async run({ w, url }) {
      const id = await w.askable(url);
      const own = { key: keyOf(w), capabilities: ELICITS };
      const [mine, second] = [await begin(mcpOf(w), own), await begin(mcpOf(w), own)];
      const asked = await askLegacy(w, mine.id, id);
      const text = answerTo(asked.question);
      await post(mcpOf(w), text, { key: keyOf(w), headers: { "mcp-session-id": second.id } });
      await post(mcpOf(w), text, { key: keyOf(w) }).catch(() => null);
      const stolen = await post(mcpOf(w), text, { key: keyOf(w, "other"), headers: { "mcp-session-id": mine.id } });
      expect(stolen.status).toBe(404);
      expect(await w.stateOf(id)).toBe("awaiting_approval");
      await asked.leave();
    },
  },
  {
    name: "An answer comes after the person's rejection, from a call that was cancelled",
    async run({ w, url }) {
      const id = await w.askable(url);
      const { id: session } = await begin(mcpOf(w), { key: keyOf(w), capabilities: ELICITS });
      const asked = await askLegacy(w, session, id);
      const mine = { key: keyOf(w), headers: { "mcp-session-id": session } };
      const cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
      await post(mcpOf(w), cancelled, mine);
      await w.reject(id);
      await w.by("POST", `/v1/actions/${id}/retry`, { body: { reason: "Again." } });
      await post(mcpOf(w), answerTo(asked.question), mine);
      await asked.leave();
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
];

const REST_ATTACKS: readonly Attack[] = [
  {
    name: "Short secrets of another key's action are read in its facts, which are masked for whoever decides",
    run: async ({ w, url }) => {
      const request = {
        url: `${url}?password=${HUNTER}`,
        reason: `password=${HUNTER}`,
        callback: `${w.listed.url}?token=${HUNTER}`,
      };
      const made = await w.ask("POST", "/v1/actions", { key: w.keys["other"] ?? "", body: request });
      for (const name of ["agent", "reader"]) {
        const key = w.keys[name] ?? "";
        const { status, text } = await w.ask("GET", `/v1/actions/${String(made.json["id"])}/facts`, { key });
        expect({ status, isTold: text.includes(HUNTER) }, name).toMatchObject({ isTold: false });
      }
    },
  },
  {
    name: "Metrics, health, the API's document and errors tell of hosts, ids, keys and people",
    run: async ({ w, url }) => {
      const id = await w.held({ url: `${url}canary-path`, headers: { Authorization: SECRET } });
      const paths = ["/metrics", "/health", "/ready", "/openapi.json", "/docs", "/nothing", "/v1/nothing"];
      const told = await Promise.all(paths.map(async (path) => (await w.ask("GET", path)).text));
      for (const text of told) {
        for (const canary of [
          id,
          hostOf(w.listed),
          "canary-path",
          SECRET,
          w.keyIds["agent"] ?? "",
          w.keys["agent"] ?? "",
        ]) {
          expect(text).not.toContain(canary);
        }
      }
      for (const text of told.slice(0, 3)) expect(text).not.toContain(ANN);
      for (const canary of [SECRET, "canary-path", w.keys["agent"] ?? "", w.cookie.split("=")[1] ?? ""]) {
        expect(w.service.output).not.toContain(canary);
      }
    },
  },
  {
    name: "The payload is written in escapes of JSON that a number in the body keeps from being read",
    run: async (scene) => {
      const { w, url } = scene;
      const escaped = String.raw`{"n":1.0,"\u0064\u006f":"\u0064\u0065\u006c\u0065\u0074\u0065 \u0061\u006c\u006c"}`;
      const { json } = await w.create(`{"url":"${url}","body":${escaped},"notify":{"email":"${ANN}"}}`);
      const places = await placesOf(scene, String(json["id"]));
      for (const [place, text] of Object.entries(places)) {
        expect(text.includes("delete all") && text.includes('"do"'), place).toBe(true);
      }
    },
  },
];

const SESSION_ATTACKS: readonly Attack[] = [
  {
    name: "Its page on another port, in the browser in which the owner is signed in",
    isPossible: HAS_BROWSER,
    async run({ w, url }) {
      await using evil = new Target(previews);
      const id = await w.held({ url, headers: { authorization: SECRET } });
      await using watched = await watchPage(browser);
      const { page } = watched;
      await logIn(page, w.base);
      await page.goto(evil.url);
      expect(await page.evaluate("localStorage.length + document.cookie.length")).toBe(0);
      const cookie = evil.received.at(-1)?.headers.get("cookie") ?? "";
      expect(cookie).toContain("outgate_session=");
      const path = `${w.base}/approvals/${id}`;
      const html = await (await fetch(path, { headers: { cookie } })).text();
      const fields = { ...hiddenIn(html), decision: "approve", session_secret: "0".repeat(64) };
      const told = await page.evaluate(`(async () => {
        const init = { method: "POST", credentials: "include", body: new URLSearchParams(${JSON.stringify(fields)}) };
        const opaque = await fetch(${JSON.stringify(path)}, { ...init, mode: "no-cors" }).then((r) => r.status, () => 0);
        return [opaque, await fetch(${JSON.stringify(path)}, init).then(() => "read it", () => "blocked")];
      })()`);
      expect(told).toEqual([0, "blocked"]);
      const frame = `new Promise((done) => {
        const frame = Object.assign(document.createElement("iframe"), { src: ${JSON.stringify(path)} });
        frame.onload = () => { try { done(frame.contentDocument === null ? "hidden" : frame.contentDocument.body.innerText); } catch { done("hidden"); } };
        document.body.append(frame);
      })`;
      expect(await page.evaluate(frame)).not.toContain("Approve");
      const answered = page.waitForResponse(path);
      await page.evaluate(SENDS(path, fields));
      expect((await answered).status()).toBe(403);
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
];

const MACHINE_ATTACKS: readonly Attack[] = [
  {
    name: "The files of the service, as another user of the machine",
    async run({ w }) {
      const { folder } = w.service;
      const files = readdirSync(join(folder, "data")).map((name) => join(folder, "data", name));
      expect(files.length).toBeGreaterThanOrEqual(2);
      for (const file of [join(folder, "data"), ...files]) {
        expect(statSync(file).mode & 0o077, file).toBe(0);
      }
      if (process.getuid?.() !== 0 || !existsSync("/usr/bin/setpriv")) return;
      const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
      Bun.spawnSync(["chmod", "755", folder]);
      const { pid } = w.service.process;
      for (const file of [...files, `/proc/${pid}/environ`, `/proc/${pid}/mem`]) {
        const { stdout } = Bun.spawnSync([...nobody, "head", "-c", "100", file]);
        expect(stdout, file).toHaveLength(0);
      }
      Bun.spawnSync(["chmod", "700", folder]);
    },
  },
  {
    name: "The port of the service at the other address of localhost, while the service runs",
    isPossible: HAS_BROWSER && HAS_IPV6,
    async run({ url }) {
      const port = await freePort();
      await using service = new Service({ env: { PORT: String(port) } });
      await service.ready();
      const link = await welcomeLinkOf(service);
      const { id } = await service.create({ url, approve: true });
      // The owner has signed in under a name of this machine that is ours, too.
      await using owner = await watchPage(browser);
      await owner.page.goto(`http://localhost:${port}${link}`);
      await owner.page.getByLabel("Email").fill(ANN);
      await owner.page.getByLabel("Password").fill(PASSWORD);
      await owner.page.getByRole("button", { name: "Create login" }).click();
      await owner.page.waitForURL(/\/(approvals|overview|get-started)/);
      const state = await owner.page.context().storageState();
      // The agent listens at [::1], which browsers ask first. It may be refused that.
      let cookie = "";
      let evil: ReturnType<typeof Bun.serve> | null = null;
      try {
        evil = Bun.serve({
          port,
          hostname: "::1",
          reusePort: false,
          fetch(request) {
            cookie = request.headers.get("cookie") ?? cookie;
            return previews();
          },
        });
      } catch {
        return;
      }
      // The same browser, some seconds later: no connection of before is open.
      await using later = await watchPage(browser, { storageState: state });
      await later.page.goto(`http://localhost:${port}/approvals`);
      const session_secret = String(await later.page.evaluate('localStorage.getItem("outgate_session_secret")'));
      await evil.stop(true);
      const page = `http://127.0.0.1:${port}/approvals/${String(id)}`;
      const html = await (await fetch(page, { headers: { cookie } })).text();
      await fetch(page, {
        method: "POST",
        headers: { cookie, origin: new URL(page).origin },
        body: new URLSearchParams({ ...hiddenIn(html), session_secret, decision: "approve" }),
        redirect: "manual",
      });
      expect(await service.request(`/v1/actions/${String(id)}`).then((answer) => answer.json())).toMatchObject({
        status: "awaiting_approval",
      });
    },
  },
];

testAttacks([...MCP_ATTACKS, ...REST_ATTACKS, ...SESSION_ATTACKS, ...MACHINE_ATTACKS]);
