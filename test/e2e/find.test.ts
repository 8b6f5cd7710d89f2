import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OWNER_KEY, Service } from "../support/service.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const GUIDE = readFileSync(join(import.meta.dir, "../../docs/find.md"), "utf8");

const COMMANDS = [...GUIDE.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);

const folder = mkdtempSync(join(tmpdir(), "outgate-find-"));

let service: Service;
let url: string;

beforeAll(async () => {
  service = new Service();
  url = await service.ready();
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("the guide has a search, an export, a dry run and a job", () => {
  expect(COMMANDS).toHaveLength(4);
});

test.each(COMMANDS.map((text) => [/v1\/\S+/.exec(text)?.[0] ?? "", text]))("%s", async (_path, command) => {
  const shell = Bun.spawn(["bash", "-ec", command.replaceAll("http://127.0.0.1:3000", url)], {
    cwd: folder,
    env: { PATH: process.env["PATH"], OUTGATE_API_KEY: OWNER_KEY },
    stdout: "pipe",
  });
  const text = await new Response(shell.stdout).text();
  expect(await shell.exited).toBe(0);
  if (command.includes("failed.csv")) {
    expect(readFileSync(join(folder, "failed.csv"), "utf8")).toStartWith('"id","status"');
    return;
  }
  const json = JSON.parse(text) as object;
  expect(json).not.toHaveProperty("error");
  if (command.includes("dry_run"))
    expect(json).toEqual({ matching: 0, is_more: false, unknown_outcomes: 0, late_results: 0, groups: [] });
  else if (command.includes('"operation"')) expect(json).toMatchObject({ operation: "retry", status: "running" });
  else expect(json).toEqual({ data: [], next_cursor: null });
});
