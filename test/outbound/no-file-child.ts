import { closeSync, openSync } from "node:fs";
import { createSender } from "../../src/outbound/send.ts";
import { LOCAL, requestTo } from "./policies.ts";

/** Sends calls in a process that has no free file, and prints how they ended; at last with free files. */
const sender = createSender(LOCAL);
using target = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
const faultOf = async (url: string) => {
  const outcome = await sender.send(requestTo(url), { timeoutMs: 5_000 });
  return "fault" in outcome ? `${outcome.kind} ${outcome.fault}` : outcome.kind;
};
const at = `127.0.0.1:${target.port}`;
// What Bun loads for its first call needs files, too.
const outcomes = [await faultOf(`http://${at}/`)];
const files: number[] = [];
try {
  for (;;) files.push(openSync("/dev/null", "r"));
} catch {
  outcomes.push(await faultOf(`http://${at}/`), await faultOf(`https://${at}/`), await faultOf("http://name.example/"));
}
for (const file of files) closeSync(file);
outcomes.push(await faultOf(`http://${at}/`));
console.log(outcomes.join("\n"));
process.exit(0);
