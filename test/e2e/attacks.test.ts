import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { networkInterfaces } from "node:os";
import type { Browser, Page } from "playwright-core";
import { begin, open, post } from "../mcp/wire.ts";
import { BROWSER_START_MS_MAX, closeContexts, HAS_BROWSER, openBrowser, watchPage } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { hiddenIn } from "../support/forms.ts";
import { freePort } from "../support/free-port.ts";
import { IS_LONG } from "../support/long.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

/*
 * An agent that has a key with a hold, runs on the machine of the owner's browser, and is malicious. Each attack is tried
 * against the real program: nothing that nobody approved may reach a target. What one route refuses alone is tested beside that
 * route; here is what takes several of them, or the whole program.
 */

// Programs and a browser, on a machine that may be busy.
setDefaultTimeout(60_000);

const ANN = "ann@example.com";
const PASSWORD = "correct horse battery staple";

/** How long a call that should not be sent has to leave after an attack; all targets are looked at again in the end. */
const SETTLE_MS = 30;
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const YES = { action: "accept", content: { decision: "approve" } } as const;
const ELICITS = { elicitation: {} } as const;

let browser: Browser;
beforeAll(async () => {
  if (HAS_BROWSER) browser = await openBrowser();
}, BROWSER_START_MS_MAX);
afterAll(async () => {
  if (HAS_BROWSER) await closeContexts(browser);
});

const MODES = {
  A: { hold: "all", env: { AGENT_APPROVAL: "off", APPROVERS: ANN } },
  B: { hold: "writes", env: {} },
} as const;

type World = Awaited<ReturnType<typeof openWorld>>;

/** One service with its first person, and two agents of which the first attacks. */
async function openWorld(mode: keyof typeof MODES) {
  const { hold, env } = MODES[mode];
  // With short delays, so that a retry would be seen.
  const service = new Service({ env: { RETRY_BASE_MS: "10", RETRY_CAP_MS: "20", ...env } });
  const base = await service.ready();
  await fetch(base + (await welcomeLinkOf(service)), {
    method: "POST",
    redirect: "manual",
    headers: { origin: base },
    body: new URLSearchParams({ email: ANN, password: PASSWORD, session_secret: "5e".repeat(32) }),
  });
  const send = async (path: string, body: object, key: string) => {
    const answer = await service.request(path, { method: "POST", body: JSON.stringify(body), key });
    return (await answer.json()) as Readonly<Record<string, unknown>>;
  };
  const keyOf = async (name: string) =>
    String((await send("/v1/keys", { name, role: "agent", hold }, OWNER_KEY))["key"]);
  const [agent, other] = [await keyOf("agent"), await keyOf("other")];
  const stateOf = async (id: string) => {
    return ((await (await service.request(`/v1/actions/${id}`)).json()) as { readonly status: string }).status;
  };
  return {
    base,
    mcp: `${base}/mcp`,
    agent,
    other,
    /** Whether an agent's client may be asked about what is held by its own wish. */
    asksClients: mode === "B",
    send,
    stateOf,
    /** Held by its own wish. */
    async held(members: object): Promise<string> {
      const id = String((await send("/v1/actions", { method: "GET", approve: true, ...members }, agent))["id"]);
      expect(await stateOf(id)).toBe("awaiting_approval");
      return id;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

function welcomeLinkOf(service: Service): Promise<string> {
  return eventually(() => /\/welcome\/[0-9a-f]{64}/.exec(service.output)?.[0] ?? null, "the welcome link");
}

/** A call whose answer is a stream that stays open while its question waits. Tells the id of the question. */
async function askLegacy(w: World, session: string, id: string) {
  const call = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "approve", arguments: { id } } };
  const headers = { "mcp-session-id": session };
  const answer = await open(w.mcp, JSON.stringify(call), { key: w.agent, headers });
  let seen = "";
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader !== undefined && !/elicitation\/create[^]*\n\n|"structuredContent"|"isError"/.test(seen)) {
    const { done, value } = await reader.read();
    if (done) break;
    seen += value;
  }
  const question = /"method":"elicitation\/create"/.test(seen) ? (/"id":(\d+|"[^"]+")/.exec(seen)?.[1] ?? null) : null;
  expect(question !== null).toBe(w.asksClients);
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

describe.each(IS_LONG ? (["A", "B"] as const) : (["A"] as const))("in mode %s", (mode) => {
  let w: World;
  const victims = new Map<string, Target>();
  beforeAll(async () => {
    w = await openWorld(mode);
  });
  afterAll(async () => {
    await w[Symbol.asyncDispose]();
    for (const target of victims.values()) await target[Symbol.asyncDispose]();
  });

  /** What is tried, whether this machine has what it takes, and how, with the address of a target that nothing may come to. */
  const attack = (name: string, isPossible: boolean, run: (url: string) => Promise<void>) =>
    test.skipIf(!isPossible)(`${name}: in vain`, async () => {
      const target = new Target();
      victims.set(name, target);
      await run(target.url);
      await Bun.sleep(SETTLE_MS);
      expect(target.received).toEqual([]);
    });

  attack("An answer is posted into a session where no question is open", true, async (url) => {
    const id = await w.held({ url });
    const { id: session } = await begin(w.mcp, { key: w.agent, capabilities: ELICITS });
    for (const question of ["0", "1", "2", '"0"', "-1"]) {
      await post(w.mcp, answerTo(question), { key: w.agent, headers: { "mcp-session-id": session } });
    }
    expect(await w.stateOf(id)).toBe("awaiting_approval");
  });

  attack("An open question is answered from another session, from no session and by another key", true, async (url) => {
    const id = await w.held({ url });
    const own = { key: w.agent, capabilities: ELICITS };
    const [mine, second] = [await begin(w.mcp, own), await begin(w.mcp, own)];
    const asked = await askLegacy(w, mine.id, id);
    const text = answerTo(asked.question);
    await post(w.mcp, text, { key: w.agent, headers: { "mcp-session-id": second.id } });
    await post(w.mcp, text, { key: w.agent }).catch(() => null);
    const stolen = await post(w.mcp, text, { key: w.other, headers: { "mcp-session-id": mine.id } });
    expect(stolen.status).toBe(404);
    expect(await w.stateOf(id)).toBe("awaiting_approval");
    await asked.leave();
  });

  attack("An answer comes after the person's rejection, from a call that was cancelled", true, async (url) => {
    const id = await w.held({ url });
    const { id: session } = await begin(w.mcp, { key: w.agent, capabilities: ELICITS });
    const asked = await askLegacy(w, session, id);
    const mine = { key: w.agent, headers: { "mcp-session-id": session } };
    const cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
    await post(w.mcp, cancelled, mine);
    await w.send(`/v1/actions/${id}/cancel`, { reason: "said the owner" }, OWNER_KEY);
    await w.send(`/v1/actions/${id}/retry`, { reason: "Again." }, w.agent);
    await post(w.mcp, answerTo(asked.question), mine);
    await asked.leave();
    expect(await w.stateOf(id)).toBe("awaiting_approval");
  });

  attack("Its page on another port, in the browser in which the owner is signed in", HAS_BROWSER, async (url) => {
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
  });

  attack(
    "The port of the service at the other address of localhost, while the service runs",
    HAS_BROWSER && HAS_IPV6,
    async (url) => {
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
  );

  test("and after all of them nothing has come to any target that nobody approved", async () => {
    await Bun.sleep(10 * SETTLE_MS);
    expect([...victims].filter(([, target]) => target.received.length > 0).map(([name]) => name)).toEqual([]);
  });
});
