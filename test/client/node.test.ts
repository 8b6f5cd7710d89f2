import { expect, test } from "bun:test";
import { join } from "node:path";
import { OWNER_KEY, Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";

const CLIENT = join(import.meta.dir, "../../src/client/client.ts");

/** What a program of somebody else does with the client; it prints what it has seen. */
const PROGRAM = `
import { createClient } from ${JSON.stringify(CLIENT)};
const outgate = createClient({ url: process.env.OUTGATE_URL, apiKey: process.env.OUTGATE_API_KEY });
const leave = new AbortController();
const statuses = [];
const following = (async () => {
  for await (const { data } of outgate.streamEvents({ signal: leave.signal })) {
    statuses.push(data.status);
    if (data.status === "completed") leave.abort();
  }
})();
// The stream is open when it has told of this one.
while (statuses.length === 0) {
  await outgate.createAction({ url: process.env.TARGET, approve: true });
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const done = await outgate.createAction({ url: process.env.TARGET, sync: true });
await following;
const refused = await outgate.getAction("act_nobody").catch((error) => error.code);
const enough = new AbortController();
let left = null;
try {
  for await (const _ of outgate.exportActions({}, { signal: enough.signal })) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    enough.abort();
  }
} catch (error) {
  left = error.name;
}
console.log(JSON.stringify({ status: done.status, last: statuses.at(-1), refused, left }));
`;

test("the client is one file for Node, and does there what it does here", async () => {
  await using folder = await temporaryFolder();
  await using target = new Target();
  await using service = new Service();
  const entry = join(folder.path, "program.ts");
  await Bun.write(entry, PROGRAM);
  const built = await Bun.build({ entrypoints: [entry], target: "node", outdir: folder.path, naming: "program.mjs" });
  expect(built.success).toBe(true);
  const env = {
    PATH: process.env["PATH"],
    OUTGATE_URL: await service.ready(),
    OUTGATE_API_KEY: OWNER_KEY,
    TARGET: target.url,
  };
  const node = Bun.spawn(["node", join(folder.path, "program.mjs")], { env, stdout: "pipe", stderr: "pipe" });
  const [said, complaint] = await Promise.all([new Response(node.stdout).text(), new Response(node.stderr).text()]);
  expect({ code: await node.exited, complaint }).toEqual({ code: 0, complaint: "" });
  expect(JSON.parse(said)).toEqual({
    status: "completed",
    last: "completed",
    refused: "not_found",
    left: "AbortError",
  });
});
