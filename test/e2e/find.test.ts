import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OWNER_KEY, Service } from "../support/service.ts";
import { shared, sharedFolder } from "../support/shared.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const GUIDE = readFileSync(join(import.meta.dir, "../../docs/find.md"), "utf8");

const COMMANDS = [...GUIDE.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);

const folder = sharedFolder();

const service = await shared(new Service());
const url = await service.ready();

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
