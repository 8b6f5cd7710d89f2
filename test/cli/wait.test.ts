import { describe, expect, test } from "bun:test";
import { createClient } from "../../src/client/client.ts";
import { OutgateError } from "../../src/client/transport.ts";
import { waitForEnd } from "../../src/client/wait.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { outgate, saidBy, start } from "./outgate.ts";
import { until } from "../support/until.ts";

type Action = Parameters<typeof waitForEnd>[1];

const PENDING: Pick<Action, "id" | "status"> = { id: "act_1", status: "pending" };

const DONE = { id: "act_1", status: "completed" };

const refused = (code: string, status: number, retryAfter?: string) =>
  Response.json(
    { error: { code, message: "Not now.", request_id: "req_1" } },
    { status, headers: retryAfter === undefined ? {} : { "retry-after": retryAfter } },
  );

const never = new Promise<Response>(() => {});

/** A service that answers at once whatever it is asked to wait for, and time that passes only while somebody rests. */
function stand(answer: (count: number) => Response | Promise<Response>) {
  const pausesMs: number[] = [];
  let nowMs = 0;
  let asked = 0;
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => answer((asked += 1)) });
  const url = `http://127.0.0.1:${server.port}`;
  const client = createClient({ url, apiKey: "og_x", tries: 1 });
  return {
    url,
    pausesMs,
    asked: () => asked,
    pass: (ms: number) => (nowMs += ms),
    wait: (seconds: number, options = {}) =>
      waitForEnd(client.getAction, PENDING as Action, seconds, options, {
        nowMs: () => nowMs,
        pause: (ms) => {
          pausesMs.push(ms);
          nowMs += ms;
          return Promise.resolve();
        },
      }),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

describe("a wait that the service answers at once", () => {
  test("rests between its requests, longer each time, and asks some thirty times in five minutes", async () => {
    await using service = stand(() => Response.json(PENDING));
    expect((await service.wait(300)).status).toBe("pending");
    const { pausesMs } = service;
    expect(service.asked()).toBeGreaterThan(20);
    expect(service.asked()).toBeLessThan(50);
    for (const [at, ms] of pausesMs.slice(0, -1).entries()) {
      const usual = Math.min(10_000, 500 * 2 ** at);
      expect(ms).toBeGreaterThanOrEqual(usual * 0.75);
      expect(ms).toBeLessThanOrEqual(usual * 1.25);
    }
    // Not all who were turned away come back at the same moment.
    expect(new Set(pausesMs).size).toBe(pausesMs.length);
  });

  test("rests as long as Retry-After says, and goes on", async () => {
    await using service = stand((count) => (count < 3 ? refused("unavailable", 503, "7") : Response.json(DONE)));
    expect((await service.wait(60)).status).toBe("completed");
    expect(service.pausesMs).toEqual([7_000, 7_000]);
  });

  test("goes on after a restart of the service", async () => {
    const page = (status: number) => new Response("<h1>Away</h1>", { status });
    const answers = [page(502), page(404), refused("unavailable", 503)];
    await using service = stand((count) => answers[count - 1] ?? Response.json(DONE));
    expect((await service.wait(60)).status).toBe("completed");
    expect(service.pausesMs).toHaveLength(3);
  });

  test("ends with its caller's signal, whatever its reason", async () => {
    await using service = stand(() => Response.json(PENDING));
    const reason = new OutgateError("timed_out", "Enough.");
    const error: unknown = await service
      .wait(60, { signal: AbortSignal.abort(reason) })
      .catch((thrown: unknown) => thrown);
    expect(error).toBe(reason);
    expect(service.pausesMs).toEqual([]);
  });

  test("says why where there is no time to ask again", async () => {
    await using service = stand(() => refused("rate_limited", 429, "30"));
    const error: unknown = await service.wait(20).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OutgateError);
    expect(error).toMatchObject({ code: "rate_limited" });
    expect(service.asked()).toBe(1);
    await using slow = stand(() => {
      slow.pass(20_000);
      return refused("unavailable", 503);
    });
    expect(await slow.wait(20).catch((thrown: unknown) => thrown)).toMatchObject({ code: "unavailable" });
  });

  test("ends with whatever else the service says", async () => {
    await using service = stand(() => refused("not_found", 404));
    expect(await service.wait(20).catch((thrown: unknown) => thrown)).toMatchObject({ code: "not_found" });
    expect(service.pausesMs).toEqual([]);
  });
});

test("`outgate get --wait` and `approve --wait` ask a few times a second at most", async () => {
  await using service = stand(() => Response.json(PENDING));
  const env = { OUTGATE_URL: service.url, OUTGATE_API_KEY: "og_x" };
  const program = [process.execPath, COMMAND_LINE];
  const ends = await Promise.all([
    outgate(["get", "act_1", "--wait", "1"], { env, program }),
    outgate(["approve", "act_1", "--wait", "1"], { env, program }),
  ]);
  expect(ends.map(({ code }) => code)).toEqual([3, 3]);
  expect(service.asked()).toBeLessThan(12);
});

test("`outgate send` says what to do where it can't know what became of it: a script could send twice", async () => {
  const refuse = () => refused("forbidden", 403);
  await using created = stand((count) => (count === 1 ? Response.json(PENDING, { status: 201 }) : refuse()));
  await using unknown = stand(() => new Response("<h1>Bad Gateway</h1>", { status: 502 }));
  await using refusing = stand(refuse);
  const ends = await Promise.all(
    [created, unknown, refusing].map((service) =>
      outgate(["send", "http://a.example/", "--wait", "1", "--idempotency-key", "k"], {
        env: { OUTGATE_URL: service.url, OUTGATE_API_KEY: "og_x" },
      }),
    ),
  );
  expect(ends).toEqual([
    {
      code: 3,
      out: `${JSON.stringify(PENDING)}\n`,
      err: expect.stringContaining("Not now.\nAction act_1 was pending"),
    },
    { code: 1, out: "", err: expect.stringContaining("\nThe action may have been created. To send nothing twice") },
    { code: 1, out: "", err: "Not now.\n" },
  ]);
});

test.each([
  [["retry", "act_1"], "It may have been done: see `outgate get act_1` before you repeat it.\n"],
  [["cancel", "--status", "held"], "The job may have begun: see `outgate bulk list` before you repeat it.\n"],
])("a change whose answer is lost may have been made: %p", async (args, advice) => {
  await using unknown = stand(() => new Response("<h1>Bad Gateway</h1>", { status: 502 }));
  const said = await outgate(args, { env: { OUTGATE_URL: unknown.url, OUTGATE_API_KEY: "og_x" } });
  expect(said).toMatchObject({ code: 1, out: "" });
  expect(said.err).toEndWith(`\n${advice}`);
  expect(unknown.asked()).toBe(1);
});

test("a decision that was made is printed although its timeline can't be read", async () => {
  const ended = { ...PENDING, status: "cancelled", method: "POST", url: "https://a.example/", headers: {}, body: null };
  const rest = { attempts: 0, retries: 1, run: 1, created_by: { id: "key_1", name: "bot" }, actions: [] };
  await using service = stand((count) =>
    count === 1 ? Response.json({ ...ended, ...rest }) : refused("forbidden", 403),
  );
  const env = { OUTGATE_URL: service.url, OUTGATE_API_KEY: "og_x" };
  const said = await outgate(["cancel", "act_1", "--yes"], { env, terminal: true });
  expect(said).toMatchObject({ code: 0, out: expect.stringContaining("cancelled") });
});

test("a bulk job that has begun is named where `--wait` fails, and waited for after a restart", async () => {
  const JOB = { id: "bulk_1", operation: "retry", status: "running", matching: 1, done: 0, failed: 0 };
  const after = (answers: readonly (() => Response)[]) =>
    stand((count) =>
      count === 1 ? Response.json(JOB, { status: 202 }) : (answers[count - 2] ?? (() => refused("forbidden", 403)))(),
    );
  await using restarted = after([
    () => new Response("<h1>Away</h1>", { status: 404 }),
    () => Response.json({ ...JOB, status: "finished" }),
  ]);
  await using refusing = after([]);
  const [ended, lost] = await Promise.all(
    [restarted, refusing].map(({ url }) =>
      outgate(["retry", "--status", "failed", "--wait", "20"], { env: { OUTGATE_URL: url, OUTGATE_API_KEY: "og_x" } }),
    ),
  );
  expect(ended).toMatchObject({ code: 0, err: "" });
  expect(lost).toMatchObject({ code: 3, err: "Not now.\nJob bulk_1 has begun: see `outgate bulk get bulk_1`.\n" });
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "`outgate send` says on %s how to send nothing twice, and ends by it",
  async (signal) => {
    await using service = stand((count) => (count === 1 ? Response.json(PENDING, { status: 201 }) : never));
    const sending = start(["send", "http://a.example/", "--wait", "90", "--idempotency-key", "k"], {
      env: { OUTGATE_URL: service.url, OUTGATE_API_KEY: "og_x" },
    });
    await until(() => service.asked() === 2);
    sending.kill(signal);
    const said = await saidBy(sending);
    expect(said.err).toBe(
      "\nThe action may have been created. To send nothing twice, repeat it with --idempotency-key k\n",
    );
    expect(sending.signalCode).toBe(signal);
  },
);
