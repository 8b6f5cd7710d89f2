import { explain } from "../../src/cli/failures.ts";
import { OutgateError } from "../../src/client/transport.ts";
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommandLine } from "../../src/cli/program.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { temporaryFolder } from "../support/store.ts";
import { isWatched, outgateAt, type OutgateOptions, start } from "./outgate.ts";
import { shared } from "../support/shared.ts";

/** The members of answers that these tests look at. */
interface Shown {
  readonly id: string;
  readonly status: string;
  readonly [member: string]: unknown;
}

const service = await shared(new Service({ env: { RETRY_BASE_MS: "1", RATE_LIMIT_PER_SECOND: "0" } }));
const target = await shared(new Target(() => Response.json({ ok: true })));
const flaky = await shared(new Target(() => new Response("no", { status: 500 })));
const url = await service.ready();
const say = outgateAt(url);

async function json(args: readonly string[], options: OutgateOptions = {}) {
  const said = await say(args, options);
  if (said.out === "") throw new Error(said.err);
  return { code: said.code, value: JSON.parse(said.out) as Shown, said };
}

const held = async () => (await json(["send", target.url, "--approve"])).value.id;

describe("outgate send", () => {
  test("sends a call, and says as JSON what became of it", async () => {
    const { code, value } = await json(["send", target.url, "-d", '{"n":1}', "-H", "X-Plan: gold", "--sync"]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ status: "completed", method: "POST", body: { n: 1 }, response_body: { ok: true } });
    expect(target.received.at(-1)?.headers.get("x-plan")).toBe("gold");
  });

  test("makes one action of one run of the command, and another of the next", async () => {
    const [one, other] = [await json(["send", target.url]), await json(["send", target.url])];
    expect(one.value.id).not.toBe(other.value.id);
    expect(one.value["idempotency_key"]).toBeString();
    const again = ["send", target.url, "--idempotency-key", "k1"];
    const first = await json(again);
    expect((await json([...again, "-X", "put"])).value).toMatchObject({
      id: first.value.id,
      deduplicated: true,
      differs: ["method"],
    });
  });

  test("takes body or action from standard input, and numbers as they are written", async () => {
    const body = '{"big":12345678901234567890,"one":1.0}';
    const { said } = await json(["send", target.url, "-d", "-"], {
      input: body,
      program: [process.execPath, COMMAND_LINE],
    });
    expect(said.out).toContain(`"body":${body}`);
    const whole = `{"url":"${target.url}","method":"DELETE","body":${body},"retries":7}`;
    const { value, said: other } = await json(["send", "-", "--retries", "2"], { input: whole });
    expect(value).toMatchObject({ method: "DELETE", retries: 2 });
    expect(other.out).toContain(`"body":${body}`);
  });

  test("takes any body, and says what it is for", async () => {
    const said = ["--title", "Refund 12 EUR", "--reason", "lost", "--metadata", "order=7", "--metadata", "a.b=c=d"];
    const form = ["--form", "amount=1200", "--form", "to[]=ann", "--form", "to[]=bob"];
    const { value } = await json(["send", target.url, ...form, ...said, "--sync"]);
    expect(value).toMatchObject({
      status: "completed",
      body: null,
      form: { amount: "1200", "to[]": ["ann", "bob"] },
      title: "Refund 12 EUR",
      reason: "lost",
      metadata: { order: "7", "a.b": "c=d" },
    });
    expect(target.received.at(-1)?.body).toBe("amount=1200&to%5B%5D=ann&to%5B%5D=bob");
    expect((await json(["send", target.url, "-d", "[1.0,2]"])).said.out).toContain('"json":[1.0,2]');
    expect((await json(["send", target.url, "-d", "null"])).value["json"]).toBeNull();
    const csv = ["--text", "-", "-H", "Content-Type: text/csv"];
    expect((await json(["send", target.url, ...csv], { input: "a,b\n" })).value).toMatchObject({ text: "a,b\n" });
    expect((await json(["send", target.url, "--base64", "AAEC\n/w=="])).value).toMatchObject({ base64: "AAEC/w==" });
    const twice = await say(["send", target.url, "--text", "a", "-d", "{}"]);
    expect(twice).toMatchObject({ code: 1, err: expect.stringContaining("text: Can't go with body") });
  });

  test("shows title, reason and metadata, and before a decision the body as what it is", async () => {
    const { value } = await json(["send", target.url, "--approve", "--form", "to=a\u202eb", "--title", "Pay Ann"]);
    const shown = await say(["get", value.id], { terminal: true });
    const lines = (shown.out + shown.err).split("\n").map((line) => line.trim());
    expect(lines).toContain("| to: a<U+202E>b");
    expect(lines.find((line) => line.startsWith("Requester says"))).toContain("Pay Ann");
    expect(lines.find((line) => line.startsWith("title"))).toContain("Pay Ann");
    const list = await say(["list", "--limit", "1"], { terminal: true });
    expect(list.out).toContain("Pay Ann");
  });

  test("keeps the order of fields whose names are numbers, when it sends and when it shows them", async () => {
    const fields = ["--form", "b=1", "--form", "10=2", "--form", "2=3", "--form", "10=4"];
    const { said } = await json(["send", target.url, ...fields, "--approve"]);
    expect(said.out).toContain('"form":{"b":"1","10":["2","4"],"2":"3"}');
    const { id } = JSON.parse(said.out) as Shown;
    const shown = await say(["get", id], { terminal: true });
    expect(shown.out).toMatch(/b: 1\n +\| 10: 2\n +\| 10: 4\n +\| 2: 3\n/);
    await say(["approve", id, "--wait", "20"]);
    expect(target.received.at(-1)?.body).toBe("b=1&10=2&10=4&2=3");
    const whole = `{"url":"${target.url}","sync":true,"form":{"z":"1","3":"2","1":"3"}}`;
    await say(["send", "-"], { input: whole });
    expect(target.received.at(-1)?.body).toBe("z=1&3=2&1=3");
  });

  test("takes a body from a file", async () => {
    const file = join(service.folder, "body.json");
    await Bun.write(file, '{"from":"a file"}');
    expect((await json(["send", target.url, "-d", `@${file}`])).value).toMatchObject({ body: { from: "a file" } });
    await rm(file);
    const said = await say(["send", target.url, "-d", `@${file}`]);
    expect({ code: said.code, err: said.err }).toEqual({ code: 1, err: `The file ${file} can't be read.\n` });
  });

  test("says by its exit code how it ended", async () => {
    const codes = [
      ["send", target.url, "--wait", "20"],
      ["send", flaky.url, "--retries", "2", "--wait", "20"],
      ["send", target.url, "--approve"],
      ["send", target.url, "--approve", "--wait", "1"],
      ["send", flaky.url, "--retries", "100"],
    ].map(async (args) => (await json(args)).code);
    expect(await Promise.all(codes)).toEqual([0, 1, 4, 4, 0]);
    await using silent = new Target(() => new Promise<Response>(() => {}));
    expect((await json(["send", silent.url, "--sync", "--wait", "1"])).code).toBe(3);
  });

  test.each([
    [["send"], "<url> is missing."],
    [["send", "http://a.example/", "more"], '"more" is one argument too many.'],
    [["send", "http://a.example/", "--retries", "many"], "--retries takes a whole number of at least 1"],
    [["send", "http://a.example/", "-X", "TRACE"], "--method takes GET, POST, PUT, PATCH, DELETE"],
    [["send", "http://a.example/", "-d", "[1"], "The body is not valid JSON."],
    [["send", "http://a.example/", "--form", "a"], "--form takes 'name=value'; number 1 has another form."],
    [["send", "http://a.example/", "--metadata", "=b"], "--metadata takes 'name=value'; number 1 has another form."],
    [
      ["send", "http://a.example/", "--text", "-", "-H", "-"],
      "Only one of the action, its body and its headers can come from standard input.",
    ],
    [["send", "http://a.example/", "-d", "a=1"], "The body is not valid JSON. For a form use --form name=value"],
    [["send", "http://a.example/", "-H", "no colon"], "--header takes 'Name: value'"],
    [["send", "http://a.example/", "-H", "A: 1", "-H", "a: 2"], "A header is given twice"],
    [["send", "http://a.example/", "--frobnicate"], "Unknown option '--frobnicate'"],
    [["send", "-", "-d", "-"], "Only one of the action, its body and its headers"],
  ])("is called wrongly: %p", async (args, complaint) => {
    const said = await say(args, { input: "{}" });
    expect({ code: said.code, out: said.out }).toEqual({ code: 2, out: "" });
    expect(said.err).toStartWith(complaint);
    expect(said.err).toContain("Usage: outgate send <url>");
  });

  test("refuses bytes that are no text, which it would alter", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "latin1.txt");
    await Bun.write(file, new Uint8Array([0x61, 0xe9]));
    const refused = `The file ${file} is not text in UTF-8. For a body of other bytes use --base64.\n`;
    expect((await say(["send", target.url, "--text", `@${file}`])).err).toStartWith(refused);
    expect((await say(["signing", "verify", new URL(target.url).origin, "-d", `@${file}`])).err).toStartWith(refused);
  });

  test("says everything that the service finds wrong, field by field", async () => {
    const said = await say(["send", "ftp://a.example/", "--retries", "500"]);
    expect({ code: said.code, out: said.out }).toEqual({ code: 1, out: "" });
    expect(said.err).toContain("  url: ");
    expect(said.err).toContain("  --retries: ");
  });
});

describe("outgate get", () => {
  test("shows an action, waits for its end, and tells what happened", async () => {
    const id = await held();
    expect(await json(["get", id])).toMatchObject({ code: 4, value: { id, status: "awaiting_approval" } });
    const waiting = json(["get", id, "--wait", "30"]);
    await say(["approve", id]);
    expect(await waiting).toMatchObject({ code: 0, value: { status: "completed" } });
    const { value } = await json(["get", id, "--timeline"]);
    expect((value["data"] as Shown[]).map(({ type }) => type)).toContain("approved");
  });

  test("tells a person how an action is delivered, and what was answered", async () => {
    const { value } = await json(["send", target.url, "--give-up-on", "5xx", "--sync"]);
    const { out } = await say(["get", value.id], { terminal: true });
    expect(out).toMatch(/^ {2}delivery +gives up on 5xx\n {2}answer +200 in \d+ ms: \{/m);
  });

  test("is called show too, also by its help", async () => {
    const id = await held();
    expect(await json(["show", id])).toMatchObject({ code: 4, value: { id, status: "awaiting_approval" } });
    expect(await say(["help", "show"])).toEqual(await say(["help", "get"]));
  });

  test("says who rejected an action and why, in full at any width", async () => {
    const id = await held();
    const why = "This is the wrong customer: look at ticket 4711, which names the right one, and ask again.";
    await say(["reject", id, "--reason", why]);
    const { out } = await say(["show", id], { terminal: "real", env: { COLUMNS: "60" } });
    expect(out).toMatch(new RegExp(`rejected +\\S+Z by key:owner: ${why}\n`));
    expect(out).toMatch(/receipt +http\S+\/r\/[\w-]+\n/);
  });

  test("says that there is no such action", async () => {
    const said = await say(["get", "act_nobody"]);
    expect(said).toEqual({ code: 1, out: "", err: "There is no action with an id that begins with act_nobody.\n" });
    const whole = `act_${"0".repeat(26)}`;
    expect(await say(["get", whole])).toEqual({ code: 1, out: "", err: "There is no such action.\n" });
  });
});

describe("outgate reject", () => {
  test("refuses what isn't held, which it would cancel", async () => {
    const { id } = (await json(["send", target.url, "--delay", "3600"])).value;
    const said = await say(["reject", id]);
    expect({ code: said.code, out: said.out }).toEqual({ code: 1, out: "" });
    expect(said.err).toBe(
      `Action ${id} is pending and cannot be rejected; only an action that is awaiting_approval can. \`outgate cancel\` cancels it.\n`,
    );
    expect((await json(["get", id])).value.status).toBe("pending");
    expect((await json(["cancel", id])).value.status).toBe("cancelled");
  });
});

describe("outgate in bulk", () => {
  test("says how many a retry would cover, retries them, and lists what became of each", async () => {
    const { hostname, port } = new URL(flaky.url);
    const host = `${hostname}:${port}`;
    for (const title of ["Refund 1", "Refund 2"]) {
      await json(["send", flaky.url, "--title", title, "--retries", "1", "--wait", "30"]);
    }
    const bulk = ["retry", "--failed", "--host", host, "--title", "refund"];
    expect(await json([...bulk, "--dry-run"])).toMatchObject({ code: 0, value: { matching: 2, unknown_outcomes: 0 } });
    const job = await json([...bulk, "--reason", "It is up again.", "--wait", "30"]);
    expect(job).toMatchObject({ code: 0, value: { status: "finished", matching: 2, done: 2, failed: 0 } });
    const results = await json(["bulk", "results", job.value.id, "--json"]);
    expect(results.value["data"]).toMatchObject([{ status: "done" }, { status: "done" }]);
    expect((await json(["bulk", "get", job.value.id])).value).toEqual(job.value);
    expect((await json(["bulk", "list", "--json", "--limit", "1"])).value["data"]).toMatchObject([
      { id: job.value.id },
    ]);
    expect((await say(["bulk", "stop", job.value.id])).code).toBe(0);
    const exported = await say(["export", "--search", "refund", "--format", "csv", "--host", host]);
    expect(exported.out.trimEnd().split(/\r?\n/)).toHaveLength(3);
    const counted = await json(["list", "--count", "--host", host, "--title", "refund 1"]);
    const counts = counted.value["data"] as { count: number }[];
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(1);
  });

  test("takes several ids, also by their beginnings, and --status in place of its own options", async () => {
    const ids = [await held(), await held()];
    const named = ids.flatMap((id) => ["--id", id.slice(0, 20)]);
    expect(await json(["cancel", ...named, "--dry-run"])).toMatchObject({ value: { matching: 2 } });
    expect(await json(["cancel", ...named, "--wait", "30"])).toMatchObject({ code: 0, value: { done: 2 } });
    expect((await json(["list", ...named, "--json"])).value["data"]).toMatchObject([
      { id: ids[1], status: "cancelled" },
      { id: ids[0], status: "cancelled" },
    ]);
    const again = ["retry", "--status", "cancelled", "--id", ids[0] ?? "", "--dry-run"];
    expect(await json(again)).toMatchObject({ code: 0, value: { matching: 1 } });
  });

  test("on a terminal shows what it is about, asks first, and begins only with a yes", async () => {
    const id = (await json(["send", target.url, "--approve", "--title", "Delete export 2025-12"])).value.id;
    const cancel = ["cancel", "--status", "held", "--title", "delete export"];
    const asked = await say(cancel, { terminal: true, input: "n\n", env: { NO_COLOR: "1" } });
    expect(asked.out).toContain("1 action would be cancelled.");
    expect(asked.out).toMatch(new RegExp(`${id} .* Delete export 2025-12`));
    expect(asked.out).toContain("Cancel 1 action? [y/N] ");
    expect(asked).toMatchObject({ code: 1, out: expect.stringContaining("Nothing was begun.") });
    expect((await json(["get", id])).value.status).toBe("awaiting_approval");
    let another = "";
    const pull = async (answer: ReadableStreamDefaultController<Uint8Array>) => {
      another = (await json(["send", target.url, "--approve", "--title", "Delete export 2026-01"])).value.id;
      answer.enqueue(Buffer.from("y\n"));
    };
    const more = await say(cancel, { terminal: true, input: new ReadableStream({ pull }, { highWaterMark: 0 }) });
    expect(more).toMatchObject({ code: 1, out: expect.stringContaining("2 actions match now, 1 when you looked.") });
    await json(["cancel", another]);
    const begun = await say([...cancel, "--wait", "20"], { terminal: "real", input: "y\n" });
    expect(begun).toMatchObject({ code: 0, out: expect.stringContaining("1 of 1 done") });
    const none = await say(cancel, { terminal: true });
    expect(none).toMatchObject({ code: 1, out: expect.stringContaining("No action matches.") });
    const unasked = await say([...cancel, "--yes"], { terminal: true });
    expect(unasked).toMatchObject({ code: 0, out: expect.stringContaining("0 of 0 done") });
  });

  test.each([
    [["retry"], "retry takes the id of an action, or --status failed or --status cancelled with filters, or --id"],
    [["cancel", "--host", "a.example"], "cancel takes the id of an action, or --status pending or --status held"],
    [["retry", "act_1", "--failed"], "An id takes no filters"],
    [["cancel", "act_1", "--status", "held"], "An id takes no filters"],
    [["cancel", "--status", "held", "--run", "1"], "--run is for one action: add its id."],
    [["approve"], "<id> is missing."],
    [["cancel", ""], "<id> is empty."],
  ])("is called wrongly: %p", async (args, complaint) => {
    const said = await say(args);
    expect(said.code).toBe(2);
    expect(said.err).toStartWith(complaint);
  });
});

describe("the beginning of an id", () => {
  test("stands for the action where no other begins so, with and without its prefix, and in a URL", async () => {
    const id = await held();
    for (const text of [id.slice(0, 24), id.slice(4, 24), `${url}/actions/${id}?x=1`]) {
      expect((await json(["get", text])).value.id).toBe(id);
    }
    expect((await json(["reject", id.slice(0, 24)])).value).toMatchObject({ id, status: "cancelled" });
  });

  test("that several actions have lists them, and decides nothing", async () => {
    const ids = [await held(), await held()];
    const said = await say(["approve", ids[0]?.slice(0, 9) ?? ""]);
    expect(said).toMatchObject({ code: 1, out: "" });
    expect(said.err).toMatch(/^(\d+|Several) actions have an id that begins with act_\w{5}\. Add more of it:\nID /);
    for (const id of ids) expect(said.err).toContain(id);
    expect((await json(["get", ids[0] ?? ""])).value.status).toBe("awaiting_approval");
  });
});

test("outgate open prints the page of an action, or of the console", async () => {
  const id = await held();
  expect(await say(["open", id.slice(0, 24)])).toEqual({ code: 0, out: `${url}/actions/${id}\n`, err: "" });
  expect((await say(["open"])).out).toBe(`${url}/\n`);
  const noScreen = await say(["open", id], { terminal: true });
  expect(noScreen.out).toContain("No browser could be opened here.");
});

test("outgate list looks for actions", async () => {
  await held();
  const id = await held();
  const statuses = ["--status", "awaiting_approval", "--status", "failed"];
  const { value } = await json(["list", ...statuses, "--limit", "1", "--json"]);
  expect(value["data"]).toMatchObject([{ id }]);
  const { value: next } = await json(["list", "--limit", "1", "--json", "--cursor", String(value["next_cursor"])]);
  expect(next["data"]).not.toMatchObject([{ id }]);
});

test("in a pipe a list is a line of JSON for each row, and says on standard error how to go on", async () => {
  const [first, second] = [await held(), await held()];
  const said = await say(["list", "--limit", "2", "--status", "held"]);
  const rows = said.out.trimEnd().split("\n");
  expect(rows.map((line) => (JSON.parse(line) as Shown).id)).toEqual([second, first]);
  expect(said.err).toMatch(/^There are more: add --cursor \S+ to the command\.\n$/);
  // Any filters stay part of the command.
  const shown = await say(["list", "--limit", "1", "--status", "held"], { terminal: true, env: { NO_COLOR: "1" } });
  expect(shown.out).toMatch(/\nThere are more: add --cursor \S+ to the command\.\n$/);
  expect(await say(["list", "--host", "nobody.example"])).toEqual({ code: 0, out: "", err: "" });
});

describe("outgate approve, reject, cancel and retry", () => {
  test("name the run that they are about, and are refused where a retry has begun the next one", async () => {
    const { id } = (await json(["send", target.url, "--approve", "--reason", "The invoice is due."])).value;
    expect((await say(["get", id, "--timeline"])).out).toContain("The invoice is due.");
    await say(["reject", id, "--run", "1"]);
    expect((await json(["retry", id])).value).toMatchObject({ run: 2 });
    for (const verb of ["approve", "reject", "cancel", "retry", "send-now"]) {
      const late = await say([verb, id, "--run", "1"]);
      expect(late.code, verb).toBe(1);
      expect(late.err).toContain("is for run 1 of action");
    }
    expect((await json(["approve", id, "--run", "2"])).value).toMatchObject({ run: 2 });
  });
});

describe("outgate watch", () => {
  test("tells of every change, and ends quietly when it is interrupted", async () => {
    const watching = start(["watch"], { env: { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY } });
    const lines = linesOf(watching.stdout);
    // It is there when it has told of something.
    const first = lines.next();
    const beginning = await untilTold(first, held);
    const { value } = await json(["send", target.url, "--wait", "20"]);
    const told: Shown[] = [beginning];
    const isOver = () => told.some(({ id, status }) => id === value.id && status === "completed");
    while (!isOver()) told.push(await lines.next().then(({ value: line }) => dataOf(line)));
    expect(told.filter(({ id }) => id === value.id).map(({ status }) => status)).toEqual([
      "pending",
      "active",
      "completed",
    ]);
    watching.kill("SIGINT");
    expect(await watching.exited).toBe(0);
    expect(await new Response(watching.stderr).text()).toBe(`Watching all actions of ${url}. Ctrl-C stops watching.\n`);
  });

  test("of one action ends with it, and says how, also when it had ended before", async () => {
    const id = await held();
    const watching = say(["watch", id]);
    await isWatched(service, id);
    await say(["reject", id]);
    expect(await watching).toMatchObject({ code: 1, err: `Watching ${id} until it ends. Ctrl-C stops watching.\n` });
    expect(await say(["watch", id])).toEqual({ code: 1, out: "", err: "" });
    expect((await say(["watch", "act_nobody"])).err).toStartWith("There is no action");
    expect(await say(["watch", "--status", "done"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--status takes pending, active, awaiting_approval"),
    });
  });
});

test("an export waits for its reader", async () => {
  await held();
  let [open, most] = [0, 0];
  const stream = async () => {
    open += 1;
    most = Math.max(most, open);
    await Bun.sleep(1);
    open -= 1;
  };
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  expect(await runCommandLine(["export"], { env, out: () => {}, err: () => {}, isTty: false, stream })).toBe(0);
  expect({ open, most }).toEqual({ open: 0, most: 1 });
});

test("a command ends quietly when nobody reads on", async () => {
  const env = { PATH: process.env["PATH"], OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  const line = `"${process.execPath}" "${COMMAND_LINE}" watch | head -n 1; exit "\${PIPESTATUS[0]}"`;
  const watching = Bun.spawn(["bash", "-c", line], { env, stdout: "pipe", stderr: "pipe" });
  const isOver = watching.exited.then(() => true);
  // It hears of its reader's end when it tells of the next.
  while (!(await Promise.race([isOver, held().then(() => false)])));
  expect({ code: await watching.exited, err: await new Response(watching.stderr).text() }).toEqual({
    code: 0,
    err: `Watching all actions of ${url}. Ctrl-C stops watching.\n`,
  });
  // Whatever came first: an action of another test may still be on its way.
  expect(dataOf(await new Response(watching.stdout).text()).id).toStartWith("act_");
});

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
}

function dataOf(line: string | undefined): Shown {
  return (JSON.parse(line ?? "null") as { data: Shown }).data;
}

/** Makes news until the first of it has been told. */
async function untilTold(first: Promise<IteratorResult<string>>, makeNews: () => Promise<unknown>): Promise<Shown> {
  for (;;) {
    const line = await Promise.race([first, makeNews().then(() => null)]);
    if (line !== null) return dataOf(String(line.value));
  }
}

test("outgate callback-hosts lists hosts in their normal form, and takes them off the list", async () => {
  const added = await json(["callback-hosts", "add", "Hooks.Example.com.", "--json"]);
  expect(added).toMatchObject({ code: 0, value: { host: "hooks.example.com" } });
  expect(added.said.err).toContain("can go to hooks.example.com");
  expect((await json(["callback-hosts", "--json"])).value).toMatchObject({ data: [{ host: "hooks.example.com" }] });
  expect((await say(["callback-hosts", "remove", "HOOKS.example.com"])).code).toBe(0);
  expect((await json(["callback-hosts", "list", "--json"])).value).toEqual({ data: [] } as never);
  expect((await say(["callback-hosts"], { terminal: true })).out).toBe("No host is listed.\n");
  const gone = await say(["callback-hosts", "remove", "hooks.example.com"]);
  expect(gone.code).not.toBe(0);
  expect(gone.err).toContain("This host is not listed.");
  expect((await say(["callback-hosts", "add", "https://x.example/"])).err).toContain("host: Must be a host name");
});

describe("outgate hosts and send-now", () => {
  test("sets, shows and removes what applies to a host and to all", async () => {
    const rules = ["--timeout-ms", "60000", "--backoff", "100:2000", "--give-up-on", "401,5xx"];
    const limits = ["--max-per-second", "0.5", "--max-concurrent", "4"];
    const { value } = await json(["hosts", "set", "api.example.com", ...rules, ...limits]);
    const set = { timeout_ms: 60_000, backoff: { base_ms: 100, cap_ms: 2_000 }, give_up_on: [401, "5xx"] };
    expect(value).toMatchObject({ host: "api.example.com", ...set, max_per_second: 0.5, max_concurrent: 4 });
    expect((await json(["hosts", "defaults", "--give-up-on", ""])).value).toEqual({ give_up_on: [] } as never);
    const shown = await say(["hosts"], { terminal: true });
    expect(shown.out).toContain("All hosts: gives up on nothing");
    expect(shown.out).toContain("api.example.com: timeout 60000 ms; backoff 100 to 2000 ms; gives up on 401, 5xx");
    expect((await say(["hosts", "remove", "api.example.com"])).code).toBe(0);
    await json(["hosts", "defaults"]);
    expect((await json(["hosts"])).value).toEqual({ data: [], defaults: {} } as never);
    for (const wrong of [
      ["--backoff", "5"],
      ["--max-per-second", "x"],
      ["--timeout-ms", "1s"],
    ]) {
      expect((await say(["hosts", "set", "api.example.com", ...wrong])).code).toBe(2);
    }
    expect((await say(["hosts", "set", "api.example.com", "--give-up-on", "9xx"])).err).toContain("give_up_on.0");
  });

  test("a call is delayed, shown with its times, and sent now", async () => {
    const times = ["--delay", "3600", "--expires-at", "2199-01-01T00:00:00Z"];
    expect((await say(["send", target.url, ...times])).err).toContain("--expires-at: Must be within two years.");
    const { value } = await json(["send", target.url, "--delay", "3600", "--timeout-ms", "5000"]);
    expect(value).toMatchObject({ status: "pending", timeout_ms: 5_000 });
    const shown = await say(["get", value.id], { terminal: true });
    expect(shown.out).toContain("not before");
    expect(shown.out).toContain("timeout 5000 ms");
    expect((await json(["send-now", value.id, "--wait", "20"])).value).toMatchObject({ status: "completed" });
    expect((await say(["send-now", value.id])).err).toContain("only a pending action");
  });
});

describe("outgate keys", () => {
  test("makes keys, lists and revokes them", async () => {
    const made = await say(["keys", "create", "lent", "--role", "reader", "--hold", "all"]);
    expect(made.code).toBe(0);
    const key = made.out.trim();
    expect(key).toMatch(/^og_[A-Za-z0-9]{36}$/);
    const { value } = await json(["keys", "--json"]);
    const row = (value["data"] as Shown[]).find(({ name }) => name === "lent");
    expect(row).toMatchObject({ role: "reader", hold: "all", revoked_at: null });
    const refused = await say(["send", target.url], { env: { OUTGATE_API_KEY: key } });
    expect(refused.err).toContain("A key with the role reader may not do this");
    expect((await say(["keys", "revoke", row?.id ?? ""])).code).toBe(0);
    const revoked = await say(["list"], { env: { OUTGATE_API_KEY: key } });
    expect(revoked.err).toBe(
      `${url} does not accept the API key: it is mistyped, revoked, expired, or of another service.\n`,
    );
  });

  test.each([
    [["keys", "frobnicate"], "keys takes list, create or revoke"],
    [["keys", "create", "x"], "--role is missing"],
  ])("is called wrongly: %p", async (args, complaint) => {
    const said = await say(args);
    expect(said.code).toBe(2);
    expect(said.err).toStartWith(complaint);
  });
});

describe("on a terminal", () => {
  const onTerminal = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    say(args, { terminal: "real", env });

  test("people are told in words and colours, unless NO_COLOR says otherwise", async () => {
    const { out } = await onTerminal(["send", target.url, "--wait", "20"]);
    expect(out).toContain("\u001b[32mcompleted\u001b[0m");
    expect(out).toContain(`POST ${target.url}`);
    expect(out).toContain(`${url}/r/`);
    const plain = await onTerminal(["list"], { NO_COLOR: "1" });
    expect(plain.out).toContain("STATUS");
    expect(plain.out).not.toContain("\u001b[");
    expect((await onTerminal(["list", "--json"])).out).toStartWith("{\n");
  });
});

test("without a service, or with something else in its place, a command says what to do", async () => {
  const nobody = await say(["list"], { env: { OUTGATE_URL: "http://127.0.0.1:9" } });
  expect(nobody).toEqual({
    code: 1,
    out: "",
    err: "Outgate can't be reached at http://127.0.0.1:9. Start it with `npm start` or `outgate serve`, or set OUTGATE_URL to its address.\n",
  });
  await using page = new Target(() => new Response("<p>Hello</p>", { headers: { "content-type": "text/html" } }));
  const wrong = await say(["list"], { env: { OUTGATE_URL: page.url } });
  expect(wrong.err).toContain("Set OUTGATE_URL to the address of Outgate");
  const keyless = await say(["list"], { env: { OUTGATE_API_KEY: "" } });
  expect(keyless.code).toBe(2);
  expect(keyless.err).toStartWith("There is no API key. Run `outgate login`");
  const { origin } = new URL(url);
  for (const address of ["localhost", `${origin}/v1`, `${origin}/v1/`, `${origin}/mcp`, `${origin}/?a=1`]) {
    expect((await say(["list"], { env: { OUTGATE_URL: address } })).err).toContain("OUTGATE_URL must be");
  }
  expect((await say(["list"], { env: { OUTGATE_URL: `${origin}/` } })).code).toBe(0);
  const below = await say(["list"], { env: { OUTGATE_URL: `${origin}/approvals` } });
  expect(below.err).toContain(`Outgate answers at ${origin}/approvals, but does not have the path.`);
});

test("a problem that the service finds is told by the option that was given, and once", async () => {
  const list = await say(["list", "--after", "yesterday", "--code", "9xx"]);
  expect(list.err.split("\n").toSorted()).toEqual([
    "",
    "  --after: Must be a date and time with a time zone, like 2026-03-04T12:00:00Z.",
    "  --code: Must be a status such as 422, or a class of them such as 4xx.",
    "The query is not valid.",
  ]);
  const key = await say(["keys", "create", "k", "--role", "agent", "--host", "a.example", "--host", "a b"]);
  expect(key.err).toContain("\n  --host (hosts.1): Must be a host name");
  expect((await say(["cancel", "--status", "failed"])).err).toContain("\n  --status: Name a status");
  // The JSON has members, not options.
  const sent = await say(["send", "-"], { input: '{"url":"https://a.example","retries":"x"}' });
  expect(sent.err).toContain("\n  retries: Must be an integer.");
  expect((await say(["credentials", "test", "none", "x"])).err).toBe("url: Must begin with http:// or https://.\n");
});

describe("outgate pause, pauses, resume and audit", () => {
  test("stop everything, show that, go on, and tell who did so", async () => {
    const paused = (await json(["pause", "account", "--reason", "It loops."])).value;
    const { value } = await json(["send", target.url]);
    expect(value).toMatchObject({ status: "pending", paused: true });
    expect((await json(["pauses", "--json"])).value).toMatchObject({ data: [{ id: paused.id, reason: "It loops." }] });
    expect(await say(["resume", paused.id])).toMatchObject({ code: 0 });
    expect(await json(["get", value.id, "--wait", "10"])).toMatchObject({ code: 0, value: { status: "completed" } });
    const log = (await json(["audit", "--kind", "paused", "--kind", "resumed", "--limit", "2", "--json"])).value;
    expect(log).toMatchObject({ data: [{ kind: "resumed" }, { kind: "paused", subject: paused.id }] });
    const lines = (await say(["audit", "--all", "--kind", "paused"])).out.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as Shown)["kind"])).toEqual(["paused"]);
  });

  test("a key is revoked with what it left, and the pause is of a key only where one is named", async () => {
    const key = await say(["keys", "create", "leaky", "--role", "agent", "--json"]);
    const { id } = JSON.parse(key.out) as Shown;
    expect((await say(["keys", "revoke", id, "--unfinished", "pause"])).err).toContain("are paused");
    const { value } = await json(["pauses", "--json"]);
    const [pause] = value["data"] as readonly Shown[];
    expect(pause).toMatchObject({ kind: "key", key_id: id });
    await say(["resume", pause?.id ?? ""]);
    expect((await say(["pause"])).code).toBe(2);
    expect((await say(["pause", id, "--host", "api.example.com"])).code).toBe(2);
    const ofHost = (await json(["pause", "--host", "api.example.com"])).value;
    expect(ofHost).toMatchObject({ kind: "host", host: "api.example.com" });
    expect((await say(["pauses"])).out).toContain("api.example.com");
    await say(["resume", ofHost.id]);
    expect((await say(["pause", "acount"])).code).toBe(1);
    expect((await json(["pauses", "--json"])).value).toEqual({ data: [] } as never);
  });
});

test("outgate grants lists what people allow, says what is used up, and ends it", async () => {
  const { value: rule } = await json(["rules", "add", "Pay", "--effect", "hold", "--path", "/pay", "--json"]);
  const { value: key } = await json(["keys", "create", "payer", "--role", "agent", "--json"]);
  const env = { OUTGATE_API_KEY: String(key["key"]) };
  const pay = async () => (await json(["send", `${target.url}pay`, "--delay", "60"], { env })).value;
  const shown = async (...args: readonly string[]) => (await say(["grants", ...args], { terminal: true })).out;
  const body = JSON.stringify({ grant: { minutes: 10, calls: 1 } });
  await service.request(`/v1/actions/${(await pay()).id}/approve`, { method: "POST", body, key: OWNER_KEY });
  const [{ id }] = (await json(["grants", "--json"])).value["data"] as readonly [Shown];
  expect(await shown()).toContain("0 of 1");
  expect((await pay()).status).toBe("pending");
  expect(await shown()).toContain("1 of 1, used up");
  expect(await shown("end", id)).toBe(`${id} has ended.\n`);
  expect(await shown("end", id)).toContain("There is no such grant, or it has ended.");
  expect(await shown()).toBe("No grant is in force.\n");
  await say(["rules", "remove", rule.id]);
});

describe("outgate rules", () => {
  const inFile = async (text: string) => {
    const file = join(await mkdtemp(join(tmpdir(), "outgate-rules-")), "rules.json");
    await writeFile(file, text);
    return file;
  };

  test("adds, lists, exports, applies and removes, and shows what a file changes before it does", async () => {
    const payments = ["--effect", "hold", "--path", "/payments", "--when", "action.body.amount > 5000"];
    const hours = ["--between", "00:00-24:00", "--days", "mon,tue,wed,thu,fri,sat,sun", "--timezone", "Europe/Berlin"];
    const { value } = await json(["rules", "add", "Payments", ...payments, "--method", "post", ...hours, "--json"]);
    const rule = {
      name: "Payments",
      effect: "hold",
      path: "/payments",
      when: "action.body.amount > 5000",
      methods: ["POST"],
      between: {
        from: "00:00",
        to: "24:00",
        days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
        timezone: "Europe/Berlin",
      },
    };
    expect(value).toMatchObject({ ...rule, position: 0, version: 1 });
    const id = String(Reflect.get(Object(value), "id"));
    const listed = await say(["rules"], { terminal: true });
    expect(listed.out).toContain(
      `1. ${id}  Payments: hold; when action.body.amount > 5000; methods POST; path /payments`,
    );

    const exported = await say(["rules", "export"]);
    expect(JSON.parse(exported.out)).toEqual({ rules: [rule] });
    const same = await say(["rules", "apply", await inFile(exported.out)], { terminal: true });
    expect(same.out.trim()).toBe("Nothing differs.");

    const other = [
      { name: "Deletes", effect: "refuse", methods: ["DELETE"] },
      { ...rule, when: "true", explain: true },
    ];
    const file = await inFile(JSON.stringify({ rules: other }));
    await json(["send", `${target.url}payments`, "-d", '{"amount":1}']);
    const tested = await say(["rules", "test", file, "--last", "1"], { terminal: true });
    expect(tested.out).toContain("0 would have been sent, 1 held and 0 refused.");
    expect(tested.out).toMatch(/act_\w+ {2}held, not sent {2}POST \S+\/payments {2}\(Payments/);
    const tried = await say(["rules", "apply", file, "--dry-run"], { terminal: true });
    expect(tried.out.trim().split(/\r?\n/)).toEqual([
      "added    Deletes",
      "changed  Payments: when, explain",
      "Nothing was changed: --dry-run.",
    ]);
    expect(JSON.parse((await say(["rules", "export"])).out)).toEqual({ rules: [rule] });
    const applied = { added: ["Deletes"], changed: [{ name: "Payments", members: ["when", "explain"] }] };
    expect((await json(["rules", "apply", file])).value).toEqual({
      ...applied,
      removed: [],
      reordered: false,
    } as never);
    const { value: now } = await json(["rules", "--json"]);
    expect(now).toMatchObject({ data: [{ name: "Deletes" }, { id, name: "Payments", version: 2 }] });
    const rows = (await say(["rules"])).out.trimEnd().split("\n");
    expect(rows.map((row) => JSON.parse(row).name)).toEqual(["Deletes", "Payments"]);

    expect((await say(["rules", "remove", id])).code).toBe(0);
    expect((await say(["rules", "remove", id])).code).toBe(1);
    const none = await say(["rules", "apply", "-"], { input: `{"rules":[]}` });
    expect(JSON.parse(none.out)).toEqual({ added: [], changed: [], removed: ["Deletes"], reordered: false });
  });

  test("prints an empty list as no line to a program, as JSON where it asks for it, and as a sentence to a person", async () => {
    expect((await say(["rules"])).out).toBe("");
    expect(JSON.parse((await say(["rules", "--json"])).out)).toEqual({ data: [] });
    expect((await say(["rules"], { terminal: true })).out.trim()).toBe("There are no rules.");
  });

  test("adds what counts calls and adds up numbers", async () => {
    const brake = ["--more-than", "20", "--minutes", "5", "--same", "request"];
    const loop = await json(["rules", "add", "Loop", "--effect", "hold", ...brake]);
    expect(loop.value).toMatchObject({ more_than: { count: 20, minutes: 5, same: "request" } });
    const sum = ["--sum", "body.amount", "--limit", "99.5", "--per", "day", "--timezone", "Europe/Berlin"];
    const budget = await json(["rules", "add", "Budget", "--effect", "hold", ...sum]);
    const limits = { member: "body.amount", limit: 99.5, per: "day", timezone: "Europe/Berlin" };
    expect(budget.value).toMatchObject({ sum: limits });
    for (const { value } of [loop, budget]) await say(["rules", "remove", String(Reflect.get(Object(value), "id"))]);
  });

  test("says what is wrong with a rule or a file", async () => {
    const incomplete = [
      [],
      ["--between", "18:00"],
      ["--days", "mon"],
      ["--timezone", "UTC"],
      ["--more-than", "5"],
      ["--sum", "body.amount", "--limit", "5"],
      ["--sum", "body.amount", "--limit", "1e3", "--per", "day"],
      ["--same", "key"],
    ];
    for (const options of incomplete) {
      const effect = options.length === 0 ? [] : ["--effect", "hold"];
      expect((await say(["rules", "add", "Odd", ...effect, ...options])).code).toBe(2);
    }
    const when = await say(["rules", "add", "Odd", "--effect", "hold", "--when", "action.amount > 1"]);
    expect([when.code, when.err]).toEqual([1, expect.stringContaining("when: ")]);
    expect((await say(["rules", "apply", await inFile("[]")])).code).toBe(2);
    expect((await say(["rules", "apply", await inFile("{}")])).err).toContain("as `outgate rules export` prints it");
    for (const more of [[], ["--dry-run"]]) {
      const odd = await say(["rules", "apply", await inFile(`{"rules":[{"name":"Odd","effect":"ask"}]}`), ...more]);
      expect([odd.code, odd.err]).toEqual([1, expect.stringContaining("rules.0.effect")]);
    }
  });
});

test("outgate channels adds, lists, tests and removes, and takes one kind", async () => {
  const { value } = await json(["channels", "add", "desk", "--mail", "ann@example.com, bob@example.com", "--json"]);
  expect(value).toMatchObject({ name: "desk", kind: "mail", to: ["ann@example.com", "bob@example.com"] });
  const id = String(Reflect.get(Object(value), "id"));
  const hook = ["channels", "add", "ops", "--slack", "https://hooks.slack.com/services/T0/B0/abcdefgh1234"];
  expect((await say([...hook, "--remind-after", "30"])).code).toBe(0);
  const listed = JSON.stringify((await json(["channels", "--json"])).value);
  expect(listed).toContain("https://hooks.slack.com/…1234");
  expect(listed).toContain('"remind_after_minutes":30');
  const tested = await say(["channels", "test", id]);
  expect(tested.code).toBe(1);
  expect((await say(["channels", "remove", id])).code).toBe(0);
  expect((await say(["channels", "remove", id])).code).toBe(1);
  expect((await say(["channels", "add", "none"])).code).toBe(2);
  expect((await say([...hook, "--webhook", "https://a.example/"])).err).toContain("takes one of --mail");
});

/** What ends a line of ours, controls a terminal in one byte and in two, and turns text around. */
const EVIL = "a\r\u001b[2Jb\u009b2Jc\u202ed";

const UNSAFE_ON_TERMINAL = /[[\p{Cc}\p{Cf}]--[\n]]/v;

describe("what a requester or a target wrote, on a terminal", () => {
  let id = "";
  beforeAll(async () => {
    await using speaking = new Target(() => Response.json({ error: { message: EVIL } }, { status: 422 }));
    const said = ["--title", "Evil \u202ed", "--reason", EVIL, "--retries", "1"];
    id = (await json(["send", `${speaking.url}evil`, ...said, "--form", `x=${EVIL}`, "--wait", "30"])).value.id;
  });

  test.each([
    [["list", "--search", "evil"]],
    [["list", "--search", "evil", "--json"]],
    [["get"]],
    [["get", "--timeline"]],
    [["export", "--search", "evil"]],
    [["export", "--search", "evil", "--format", "csv"]],
    [["retry", "--failed", "--search", "evil", "--dry-run"]],
    [["complete", "get", ""]],
  ])("is never an order to it: %p", async (args) => {
    const said = await say(args[0] === "get" ? [...args, id] : args, { terminal: true, env: { NO_COLOR: "1" } });
    expect(said.out).toContain(args.includes("--timeline") ? "<U+001B>" : id.slice(0, 17));
    expect(UNSAFE_ON_TERMINAL.exec(said.out.replaceAll("\t", " "))).toBeNull();
  });
});

test("a refusal names its problems, and how many the service left out", () => {
  const details = [{ field: "headers.X-A", message: "Must not be empty.", code: "invalid" as const }];
  const refusal = new OutgateError("validation_error", "Two are wrong.", { details, detailsLeftOut: 12 });
  expect(explain(refusal, "http://127.0.0.1")?.message).toBe(
    "Two are wrong.\n  headers.X-A: Must not be empty.\n  and 12 more",
  );
});
