import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { COMMAND_LINE, SERVICE, SOURCE } from "../support/programs.ts";
import { freePort } from "../support/free-port.ts";
import { OWNER_KEY, Service, newFolder } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

const keysIn = (output: string) => output.match(/og_[0-9A-Za-z]{36}/g) ?? [];

test("the first start needs no settings, shows two keys and a line that works when it is pasted", async () => {
  // As on a terminal, so that what it prints can be pasted.
  await using service = new Service({ env: { BOOTSTRAP_API_KEY: "", LOG_FORMAT: "text" }, program: SOURCE });
  await until(() => service.output.includes("claude mcp add"));
  const welcome = service.output;
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(welcome) ?? [];
  const asked = (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    return fetch(`${url}/v1/signing-secret?origin=https://a.example`, { headers });
  };
  const [ownerKey, agentKey] = keysIn(welcome);
  expect(ownerKey).not.toBe(agentKey);
  // A new terminal knows neither the port nor the address.
  expect(welcome).toContain(`npm run outgate -- login ${url}\n`);

  const curl = /curl[\s\S]*?}'\n/.exec(welcome)?.[0] ?? "";
  const answer = await pasted(curl, agentKey ?? "");
  expect(answer).toMatchObject({ status: "completed", response_code: 200, attempts: 1 });

  const [, address = "", header = ""] =
    /claude mcp add --transport http outgate (\S+) --scope project --header '(.*)'/.exec(welcome) ?? [];
  expect(header).toBe("Authorization: Bearer ${OUTGATE_API_KEY}");
  const ping = { method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}` };
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const authorization = header.replace("Authorization: ", "").replace("${OUTGATE_API_KEY}", () => agentKey ?? "");
  expect((await fetch(address, { ...ping, headers: { ...accept, authorization } })).status).toBe(200);

  expect((await asked(ownerKey ?? "")).status).toBe(200);
  expect((await asked(agentKey ?? "")).status).toBe(403);
  expect(await service.end()).toBe(0);
});

test("in a container whose port has another number outside, the first action reaches the service", async () => {
  const port = await freePort();
  const baseUrl = "http://localhost:9";
  await using service = new Service({ env: { HOST: "0.0.0.0", PORT: String(port), BASE_URL: baseUrl } });
  await service.logged("service.started");
  const response = await fetch(`http://127.0.0.1:${port}/v1/actions`, {
    method: "POST",
    headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ url: `${baseUrl}/health`, method: "GET", sync: true }),
  });
  expect(await response.json()).toMatchObject({ status: "completed", attempts: 1, response_code: 200 });
});

test("a first start that writes to a file or pipe writes lines of JSON only, one of them with the keys", async () => {
  await using service = new Service({ env: { BOOTSTRAP_API_KEY: "", LOG_LEVEL: "error" } });
  await until(() => service.output.includes("welcome"));
  const lines = service.output.trimEnd().split("\n");
  const events = lines.map((line): unknown => JSON.parse(line));
  expect(events).toEqual([
    {
      at: expect.any(String),
      level: "info",
      event: "service.first_keys",
      message: expect.stringContaining("shown once"),
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      owner_key: expect.stringMatching(/^og_\w{36}$/),
      agent_key: expect.stringMatching(/^og_\w{36}$/),
      welcome_url: expect.stringMatching(/^http:\S+\/welcome\/[0-9a-f]{64}$/),
    },
  ]);
  await service.end();
});

test("a new database beside an older key file is warned of, since it may be a copy without its log", async () => {
  await using place = await temporaryFolder();
  const folder = place.path;
  await using first = new Service({ folder });
  await first.ready();
  await first.end();
  expect(first.output).not.toContain("its key file");
  for (const end of ["", "-wal", "-shm"]) rmSync(join(folder, "data", `outgate.db${end}`), { force: true });
  await using second = new Service({ folder });
  await second.ready();
  expect(second.output).toMatch(/The database is new, but its key file \S+outgate.db.key was there before it/);
});

test("a process that can open too few files is warned of", async () => {
  await using service = new Service({ wrapper: ["prlimit", "--nofile=256"] });
  const { level, message } = await service.logged("service.notice");
  expect(level).toBe("warn");
  expect(message).toBe(
    "This process can have 256 files and connections open, which is too few for DISPATCH_CONCURRENCY=256: calls wait and clients fail. Raise the limit (ulimit -n), or lower DISPATCH_CONCURRENCY to 64.",
  );
});

test("in production without a terminal the first keys go into a file of this user's, and not into the log", async () => {
  await using place = await temporaryFolder();
  const folder = place.path;
  const env = { BOOTSTRAP_API_KEY: "", NODE_ENV: "production" };
  const file = join(folder, "data", "outgate.db.first-keys");
  // Something is in the way: nothing is shown, and the next start shows it.
  mkdirSync(file, { recursive: true });
  await using blocked = new Service({ env, folder });
  await blocked.ready();
  const problem = await blocked.logged("service.first_keys_not_written");
  expect(problem).toMatchObject({ level: "error", message: expect.stringContaining("can't be written") });
  expect(keysIn(blocked.output)).toEqual([]);
  expect(blocked.output).not.toMatch(/^[^{]/m);
  await blocked.end();
  rmSync(file, { recursive: true });

  await using service = new Service({ env, folder });
  await service.ready();
  expect(await service.logged("service.first_keys")).toMatchObject({ file });
  expect(service.output).not.toMatch(/^[^{]/m);
  expect(service.output).not.toMatch(/og_[0-9A-Za-z]{36}|\/welcome\//);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const text = readFileSync(file, "utf8");
  const [ownerKey = ""] = keysIn(text);
  expect((await service.request("/v1/keys", { key: ownerKey })).status).toBe(200);
  expect((await fetch(/http:\S+\/welcome\/[0-9a-f]{64}/.exec(text)?.[0] ?? "")).status).toBe(200);
  await service.end();

  await using next = new Service({ env, folder });
  await next.ready();
  expect(
    next
      .log()
      .map(({ message }) => String(message))
      .join(),
  ).toContain("Delete the file");
  expect(readFileSync(file, "utf8")).toBe(text);
  await next.end();
});

test.each([
  ["a server", SERVICE],
  ["outgate mcp", [process.execPath, COMMAND_LINE, "mcp"]],
])("%s that gets the same file by a symbolic link ends, and takes none of the calls in flight", async (_, program) => {
  const answer = Promise.withResolvers<Response>();
  await using target = new Target(() => answer.promise);
  const SECRET_KEY = randomBytes(32).toString("hex");
  await using first = new Service({ env: { SECRET_KEY } });
  const { id } = await first.create({ url: target.url });
  await target.saw(1);
  await using folder = await temporaryFolder();
  symlinkSync(join(first.folder, "data/outgate.db"), join(folder.path, "link.db"));
  const env = { SECRET_KEY, DATABASE_URL: "file:link.db" };
  await using second = new Service({ env, folder: folder.path, program });
  expect(await second.process.exited).toBe(1);
  expect(await second.complaint()).toContain("Another Outgate has the database");
  answer.resolve(new Response("done"));
  expect(await first.final(id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(target.received).toHaveLength(1);
});

test("a port that is taken is a clear sentence, also when another Outgate has it", async () => {
  await using first = new Service();
  const { port } = new URL(await first.ready());
  await using second = new Service({ env: { PORT: port } });
  expect(await second.process.exited).toBe(1);
  expect(await second.complaint()).toContain(
    `Port ${port} of 127.0.0.1 can't be listened on: another program uses it. Stop that program, or set PORT to another port.`,
  );
});

/** Runs the line as a shell would; where there is no curl, does what it says. */
async function pasted(curl: string, key: string): Promise<unknown> {
  if (Bun.which("curl") !== null) {
    const env = { ...process.env, OUTGATE_API_KEY: key };
    const child = Bun.spawn(["bash", "-c", curl], { env, stdout: "pipe" });
    return JSON.parse(await new Response(child.stdout).text());
  }
  const [url = "", body = ""] = [/http\S+\/v1\/actions/, /\{.*\}/].map((part) => part.exec(curl)?.[0] ?? "");
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  return (await fetch(url, { method: "POST", headers, body })).json();
}

/** Runs the service under a terminal of its own, by `script` of util-linux, until its output holds all the texts. */
async function onTerminal(
  env: Readonly<Record<string, string>>,
  texts: readonly string[],
  meanwhile = async (_url: string) => {},
) {
  const folder = newFolder();
  const { PATH, HOME } = process.env;
  const child = Bun.spawn(["script", "-qefc", `exec ${SERVICE.map((word) => `"${word}"`).join(" ")}`, "/dev/null"], {
    cwd: folder,
    env: { PATH, HOME, TERM: "xterm", PORT: "0", BUN_CONFIG_MAX_HTTP_REQUESTS: "1024", ...env },
    stdin: "pipe",
    stdout: "pipe",
  });
  let output = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) output += decoder.decode(chunk, { stream: true });
  })();
  try {
    const address = () => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0];
    await until(() => address() !== undefined);
    await meanwhile(address() ?? "");
    await until(() => texts.every((text) => output.includes(text)));
    return output.replaceAll("\r\n", "\n");
  } finally {
    child.kill();
    await reading;
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A read, which is no news, and a create. */
async function use(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" };
  await fetch(`${url}/v1/account`, { headers });
  const body = JSON.stringify({ url: "http://127.0.0.1:9/", retries: 1, title: "no secret" });
  await fetch(`${url}/v1/actions`, { method: "POST", headers, body });
}

test("on a terminal the log is a line of text for each event, and reads are no news", async () => {
  const output = await onTerminal({ BOOTSTRAP_API_KEY: OWNER_KEY }, ["failed   "], use);
  expect(output).toMatch(/\d\d:\d\d:\d\d\S* +request {2}201 {2}POST {3}\/v1\/actions/);
  expect(output).toContain("\u001b[31mfailed");
  expect(Bun.stripANSI(output)).toMatch(/ failed {8}POST {3}127\.0\.0\.1:9 +refused/);
  expect(output).not.toContain("/v1/account");
  expect(output).not.toMatch(/^\{/m);
});

test("LOG_FORMAT decides in spite of the terminal, or of the pipe", async () => {
  const json = await onTerminal({ BOOTSTRAP_API_KEY: OWNER_KEY, LOG_FORMAT: "json" }, ['"action.attempted"'], use);
  expect(json).toMatch(/^\{"at":"[^"]+","level":"info","event":"service\.started"/m);
  await using piped = new Service({ env: { LOG_FORMAT: "text" } });
  await until(() => piped.output.includes("is running"));
  expect(piped.output).toContain("  Console     http://127.0.0.1:");
  expect(piped.output).not.toMatch(/^\{/m);
  expect(piped.output).not.toContain("\u001b");
});
