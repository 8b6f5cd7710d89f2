import { describe, expect, test } from "bun:test";
import { peakOf } from "../support/memory.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { hugeBodies } from "./generated-requests.ts";
import { leastOf } from "./tries.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

const MEBIBYTE = 1_048_576;
const COST_MAX = 10 * MEBIBYTE;
/** So many at a time that what the collector has not yet taken away is small beside what they hold. */
const AT_ONCE = 16;
const TRIES = 8;

/** The service alone in its process: whoever sends has a memory of its own. */
const service = await shared(new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } }));
await service.ready();
for (let count = 0; count < 50; count += 1) await post(`{"url":"http://127.0.0.1:9/","approve":true}`);

async function post(body: string): Promise<number> {
  const response = await service.request("/v1/actions", { method: "POST", body });
  await response.text();
  return response.status;
}

const leastPeak = (name: string, max: number, work: () => Promise<unknown>) =>
  leastOf({ name: `memory, MB: ${name}`, max, tries: TRIES, unit: MEBIBYTE }, () => peakOf(service.process.pid, work));

/** Those that cost most of what a client may send: one long text, and a list of as many values as fit. */
const HEAVY = ["a text of a megabyte", "340,000 empty lists"] as const;

describe("a request costs under 10 MB, whatever is in it", () => {
  test.each(HEAVY)("%s", async (name) => {
    const body = (hugeBodies()[name] ?? "").replace("{", `{"approve":true,`);
    const all = () => Promise.all(Array.from({ length: AT_ONCE }, () => post(body)));
    expect((await leastPeak(`${AT_ONCE} of ${name}`, COST_MAX * AT_ONCE, all)) / AT_ONCE).toBeLessThan(COST_MAX);
  });

  test("200 logins without a key that never end keep nothing of their bodies", async () => {
    const port = Number(new URL(await service.ready()).port);
    const head = request("POST /auth/login", ["Content-Type: application/json", "Content-Length: 1000000"]);
    const body = new Uint8Array(999_999);
    const unfinished = async () => {
      const { text } = await exchange(port, [head, body], { boundMs: 60_000 });
      expect(readAnswer(text).status).toBe(413);
    };
    const all = () => Promise.all(Array.from({ length: 200 }, unfinished));
    expect(await leastPeak("unfinished logins", 5 * COST_MAX, all)).toBeLessThan(5 * COST_MAX);
  }, 120_000);

  test("B26 chunks without end: 413, while up to 40 MB are poured in", async () => {
    const port = Number(new URL(await service.ready()).port);
    const head = [`Authorization: Bearer ${OWNER_KEY}`, "Content-Type: application/json", "Transfer-Encoding: chunked"];
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const pour = async () => void (await new Promise((resolve) => setImmediate(resolve)));
    const endless = Array.from({ length: 640 }, () => [chunk, pour]).flat();
    const poured = async () => {
      const { text, isClosed } = await exchange(port, [request("POST /v1/actions", head), ...endless]);
      expect({ status: readAnswer(text).status, isClosed }).toEqual({ status: 413, isClosed: true });
    };
    expect(await leastPeak("endless chunks", COST_MAX, poured)).toBeLessThan(COST_MAX);
  });
});
