import { describe, expect, test } from "bun:test";
import { createClient } from "../../src/client/client.ts";
import { until } from "../support/until.ts";

type Reply = () => Response | Promise<Response>;

const problem = (status: number, code: string) => () =>
  Response.json(
    { error: { code, message: `It is ${code}.`, request_id: "req_1" } },
    // As the service says where its rate is too high.
    { status, headers: status === 429 ? { "retry-after": "1" } : {} },
  );

const fine: Reply = () => Response.json({ id: "act_1", status: "pending" });

const never: Reply = () => new Promise<Response>(() => {});

const neverWhole: Reply = () => new Response(new ReadableStream({ start() {} }));

/** Where nothing comes there is nothing to wait for; whatever comes has time to, on a busy machine too. */
const [SILENCE_MS, PATIENCE_MS] = [400, 10_000];

/** Something that stands where Outgate should: its n-th answer is the n-th of the list, the last one for ever. */
function stand(...replies: readonly Reply[]) {
  const seen: { method: string; key: string | null }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      seen.push({ method: request.method, key: request.headers.get("idempotency-key") });
      return (replies[Math.min(seen.length, replies.length) - 1] ?? fine)();
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const timeoutMs = replies.some((reply) => reply === never || reply === neverWhole) ? SILENCE_MS : PATIENCE_MS;
  const client = createClient({ url, apiKey: "og_x", timeoutMs, retryBaseMs: 1 });
  return { seen, url, client, [Symbol.asyncDispose]: () => server.stop(true) };
}

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

describe("a call that is safe to repeat", () => {
  test.each([
    ["while the service is away", problem(503, "unavailable")],
    ["through a proxy whose service is away", () => new Response("<h1>Bad Gateway</h1>", { status: 502 })],
    ["after an answer that did not come in time", never],
    ["after an answer whose body did not come in time", neverWhole],
  ])("is made again %s", async (_what, reply) => {
    await using outgate = stand(reply, fine);
    expect(await outgate.client.getAction("act_1")).toMatchObject({ id: "act_1" });
    expect(outgate.seen).toHaveLength(2);
  });

  test("is a create with a key, and the key is the same each time", async () => {
    await using outgate = stand(problem(503, "unavailable"), never, fine);
    await outgate.client.createAction({ url: "http://a.example/" }, { idempotencyKey: "k" });
    expect(outgate.seen).toEqual(Array.from({ length: 3 }, () => ({ method: "POST", key: "k" })));
  });

  test("is made three times at most", async () => {
    await using outgate = stand(problem(503, "unavailable"));
    expect(await failure(outgate.client.revokeKey("key_1"))).toMatchObject({ code: "unavailable", status: 503 });
    expect(outgate.seen).toHaveLength(3);
  });

  test("is not made again when the answer would be the same", async () => {
    await using outgate = stand(problem(404, "not_found"));
    expect(await failure(outgate.client.getAction("act_1"))).toMatchObject({ code: "not_found", requestId: "req_1" });
    expect(outgate.seen).toHaveLength(1);
  });
});

describe("a call that is not safe to repeat", () => {
  test.each([
    [
      "a create without a key",
      (client: ReturnType<typeof stand>["client"]) => client.createAction({ url: "http://a/" }),
    ],
    ["a decision", (client: ReturnType<typeof stand>["client"]) => client.approveAction("act_1")],
    ["a new key", (client: ReturnType<typeof stand>["client"]) => client.createKey({ name: "a", role: "agent" })],
  ])("is made once: %s", async (_what, call) => {
    for (const reply of [problem(503, "unavailable"), problem(500, "internal_error"), never]) {
      await using outgate = stand(reply);
      expect(await failure(call(outgate.client))).not.toBeNull();
      expect(outgate.seen).toHaveLength(1);
    }
  });

  test("is made again when it was refused for its rate: then it was not carried out", async () => {
    await using outgate = stand(problem(429, "rate_limited"), fine);
    const startedMs = performance.now();
    expect(await outgate.client.createAction({ url: "http://a/" })).toMatchObject({ id: "act_1" });
    // As `Retry-After` says.
    expect(performance.now() - startedMs).toBeGreaterThan(990);
    expect(outgate.seen).toHaveLength(2);
  });
});

describe("what went wrong is said in words of our own", () => {
  test("when nobody is there", async () => {
    const nobody = stand();
    await nobody[Symbol.asyncDispose]();
    const error = await failure(nobody.client.getHealth());
    expect(error).toMatchObject({
      code: "unreachable",
      status: null,
      message: `Outgate can't be reached at ${nobody.url}.`,
    });
  });

  test("when no answer comes in time", async () => {
    await using outgate = stand(never);
    const error = await failure(outgate.client.cancelAction("act_1"));
    expect(error).toMatchObject({ code: "timed_out", message: `Outgate at ${outgate.url} did not answer in time.` });
  });

  test.each([
    ["a page", () => new Response("<p>Hello</p>", { headers: { "content-type": "text/html" } })],
    ["a redirect", () => Response.redirect("http://127.0.0.1:9/", 302)],
    ["broken JSON", () => new Response("{", { headers: { "content-type": "application/json" } })],
    ["JSON of an error that is none of ours", () => Response.json({ oops: true }, { status: 418 })],
    ["an error with a number", () => Response.json({ error: { code: 403, message: "No." } }, { status: 403 })],
    [
      "an error with other details",
      () => Response.json({ error: { code: "a", message: "b", details: [{}] } }, { status: 400 }),
    ],
    [
      "an error with details that are no list",
      () => Response.json({ error: { code: "a", message: "b", details: "c" } }, { status: 400 }),
    ],
    ["JSON of something else", () => Response.json({ status: "ok" })],
    ["JSON that is no object", () => Response.json(["limits"])],
    ["plain text", () => new Response("OK", { headers: { "content-type": "text/plain" } })],
    ["nothing", () => new Response(null, { status: 204 })],
  ])("when something else answers: %s", async (_what, reply) => {
    await using outgate = stand(reply);
    const error = await failure(outgate.client.getAccount());
    const message = expect.stringContaining("This is not a response of Outgate: status ");
    expect(error).toMatchObject({ code: "not_outgate", message });
    expect(outgate.seen).toHaveLength(1);
  });
});

test("what something else answers is neither an end, nor a stream, nor an export", async () => {
  await using other = stand(() => Response.json({ data: [] }));
  const { client } = other;
  const expected = { code: "not_outgate", status: 200 };
  expect(await failure(client.endPause("pau_1"))).toMatchObject(expected);
  expect(await failure(client.streamEvents().next())).toMatchObject(expected);
  expect(await failure(client.exportActions().next())).toMatchObject(expected);
});

test("a pause before another try ends with the caller's signal", async () => {
  await using outgate = stand(problem(429, "rate_limited"));
  const release = new AbortController();
  const call = failure(outgate.client.listActions({}, { signal: release.signal }));
  await until(() => outgate.seen.length === 1);
  // The answer is there, and the second behind it has begun.
  await Bun.sleep(100);
  release.abort("enough");
  expect(await call).toBe("enough");
  expect(outgate.seen).toHaveLength(1);
});
