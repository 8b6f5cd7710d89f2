import { expect, test } from "bun:test";
import { join } from "node:path";
import { createProgram } from "../../src/cli/program.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";
import { isWatched, outgate } from "./outgate.ts";
import { shared } from "../support/shared.ts";

const service = await shared(new Service());
const target = await shared(new Target(() => Response.json({ ok: true })));
const folder = await shared(temporaryFolder());
const entry = join(import.meta.dir, "../../src/cli/node-main.ts");
await Bun.build({ entrypoints: [entry], target: "node", outdir: folder.path, naming: "outgate.mjs" });
const env = { OUTGATE_URL: await service.ready(), OUTGATE_API_KEY: OWNER_KEY };
const program = ["node", join(folder.path, "outgate.mjs")];
const say = (...args: readonly string[]) => outgate(args, { env, program });

test("the commands for a service elsewhere are one file for Node, and do there what they do here", async () => {
  const help = await say("help");
  const io = { env: {}, out: () => {}, err: () => {}, isTty: false };
  for (const command of createProgram(io).commands.filter(
    (one) => one.name() !== "version" && one.name() !== "complete",
  ))
    expect(help.out).toContain(`  ${command.name()} `);
  expect(help.out).not.toContain("  serve ");
  const sent = await say("send", target.url, "-d", '{"n":1}', "--sync");
  expect({ code: sent.code, err: sent.err }).toEqual({ code: 0, err: "" });
  const { id, status } = JSON.parse(sent.out) as { id: string; status: string };
  expect(status).toBe("completed");
  expect((await say("get", id)).out).toBe(sent.out);
  expect((await say("list", "--limit", "1")).out).toContain(id);
  const held = JSON.parse((await say("send", target.url, "--approve")).out) as { id: string };
  const watching = say("watch", held.id);
  await isWatched(service, held.id);
  expect((await say("approve", held.id, "--wait", "10")).code).toBe(0);
  expect((await watching).code).toBe(0);
  expect((await watching).out).toContain('"type":"action.completed"');
  expect((await say("keys")).code).toBe(0);
  expect((await say("send")).code).toBe(2);
});
