import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { SERVICE } from "../support/programs.ts";
import { newFolder, OWNER_KEY, Service } from "../support/service.ts";
import { until } from "../support/until.ts";

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
