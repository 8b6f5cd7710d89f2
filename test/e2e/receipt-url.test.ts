import { expect, test } from "bun:test";
import { outgate } from "../cli/outgate.ts";
import { callModern } from "../mcp/wire.ts";
import { freePort } from "../support/free-port.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

const BASE_URL = "https://outgate.example.com";
const RECEIPT = /https:\/\/outgate\.example\.com\/r\/[0-9a-z]{26}[0-9a-f]{32}/;
const urlIn = (text: string) => /"receipt_url":"([^"]+)"/.exec(text)?.[1];

test(
  "receipt_url is absolute wherever it is shown, where BASE_URL is set",
  async () => {
    const port = await freePort();
    const env = { BASE_URL, PORT: String(port), ALLOWED_PRIVATE_TARGETS: "127.0.0.1/32" };
    await using service = new Service({ env });
    await using target = new Target(200);
    await service.ready();
    const url = `http://127.0.0.1:${port}`;
    const headers = { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" };
    const ask = async (path: string, init: RequestInit = {}) =>
      (await fetch(`${url}${path}`, { headers, ...init })).text();

    const events = await fetch(`${url}/v1/events`, { headers });
    const body = JSON.stringify({ url: target.url, callback: `${target.url}news`, sync: true });
    const created = await ask("/v1/actions", { method: "POST", body });
    const { id } = JSON.parse(created) as { id: string };
    await target.saw(2);
    const reader = events.body?.getReader();
    let streamed = "";
    while (!streamed.includes("action.completed")) {
      streamed += new TextDecoder().decode((await reader?.read())?.value);
    }
    await reader?.cancel();
    const tool = await callModern(`${url}/mcp`, "get", `{"id":"${id}"}`, { key: OWNER_KEY });
    const result = JSON.stringify(tool.json.result?.["structuredContent"]);
    const resource = JSON.stringify(tool.json.result?.["content"]).replaceAll(String.raw`\"`, '"');
    const shown = {
      created,
      got: await ask(`/v1/actions/${id}`),
      listed: await ask("/v1/actions"),
      streamed,
      called: target.received[1]?.body ?? "",
      result,
      resource,
    };
    const receipt = urlIn(created) ?? "";
    expect(receipt).toMatch(RECEIPT);
    for (const [where, text] of Object.entries(shown)) expect(urlIn(text), where).toEqual(receipt);
    const cli = await outgate(["get", id], { env: { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY }, terminal: true });
    expect(cli.out).toContain(` ${receipt}\n`);
    // It is the receipt itself, at whatever address one is.
    const page = await fetch(`${url}${new URL(receipt).pathname}`, { headers: { accept: "application/json" } });
    expect(await page.json()).toMatchObject({ id, receipt_url: null });
  },
  { timeout: 60_000 },
);
