import { expect, setDefaultTimeout, test } from "bun:test";
import { slowness } from "../support/core.ts";
import { peakOf } from "../support/memory.ts";
import { ProbedService } from "../support/probed.ts";
import { OWNER_KEY } from "../support/service.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

/** What /health may wait, whatever strangers send. */
const GAP_MS_MAX = 100;
const PEAK_BYTES_MAX = 100 * 1_048_576;
/** What a busy machine does to one try it does not do to each. */
const TRIES = 4;
const AT_ONCE = 32;
const CHUNKS = 1_000_000;
const PIECE_CHUNKS = 10_000;

setDefaultTimeout(120_000);

const service = await shared(new ProbedService());
const port = Number(new URL(await service.ready()).port);
const KEY = `Authorization: Bearer ${OWNER_KEY}`;
const JSON_TYPE = "Content-Type: application/json";
const FORM = "Content-Type: application/x-www-form-urlencoded";
const chunks = (count: number, char = "1") => `1\r\n${char}\r\n`.repeat(count);
const PIECE = Buffer.from(chunks(PIECE_CHUNKS));

/** One body after the other, each in a connection of its own; the next piece when the one before has left. */
async function pour(line: string, headers: readonly string[], count = CHUNKS): Promise<number> {
  const turn = async () => void (await new Promise((resolve) => setImmediate(resolve)));
  const pieces = Array.from({ length: count / PIECE_CHUNKS }, () => [PIECE, turn]).flat();
  const parts = [request(line, ["Transfer-Encoding: chunked", ...headers]), turn, ...pieces, "0\r\n\r\n"];
  const { text, isClosed } = await exchange(port, parts, { boundMs: 60_000 });
  expect(isClosed).toBe(true);
  return readAnswer(text).status;
}

/** Who reads a body, and who does not: the status of the answer. */
const ROUTES: readonly (readonly [string, number, string, readonly string[]])[] = [
  ["a login", 413, "POST /auth/login", [JSON_TYPE]],
  ["a form that logs in", 413, "POST /auth/login", [FORM, "Sec-Fetch-Site: same-origin"]],
  ["a create", 413, "POST /v1/actions", [KEY, JSON_TYPE]],
  ["an agent's message", 413, "POST /mcp", [KEY, JSON_TYPE]],
  ["a create without a key", 401, "POST /v1/actions", [JSON_TYPE]],
  ["an unknown path", 404, "POST /nothing", []],
  ["a page", 303, "GET /approvals", []],
  ["the health of the service", 200, "GET /health", []],
];

test.each(ROUTES)(
  "32 bodies of a million one-byte chunks at once hold the event loop for less than 0.1 s %s",
  async (_name, status, line, headers) => {
    // Of a GET the engine has no body: the connection closes with the answer.
    if (!line.startsWith("GET")) expect(await pour(line, headers)).toBe(status);
    const gaps: number[] = [];
    const peaks: number[] = [];
    for (let tries = 0; tries < TRIES && !gaps.some((gap) => gap < GAP_MS_MAX); tries += 1) {
      const peak = await peakOf(service.process.pid, async () => {
        const gap = await service.gapOf(async () => {
          const statuses = await Promise.all(Array.from({ length: AT_ONCE }, () => pour(line, headers)));
          // A sender that does not read at once may see the reset of its connection in place of the answer, and one that comes
          // while others fill the turn is told to try again.
          const expected = [status, Number.NaN, ...(status === 413 ? [503] : [])];
          expect(new Set(statuses).difference(new Set(expected))).toEqual(new Set());
        });
        gaps.push(gap / slowness());
      });
      peaks.push(peak);
    }
    const megabytes = peaks.map((peak) => (peak / 1_048_576).toFixed(0)).join(", ");
    console.log(`${line}: ${gaps.map((gap) => gap.toFixed(0)).join(", ")} ms, ${megabytes} MB`);
    expect(Math.min(...gaps)).toBeLessThan(GAP_MS_MAX);
    expect(Math.min(...peaks)).toBeLessThan(PEAK_BYTES_MAX);
  },
);
