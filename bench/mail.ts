/**
 * Measures what a hanging mail provider costs creates: one service has a provider that accepts every connection and
 * answers none, the other has no mail. Held actions are created in turn on both, with `notify` and without; the result
 * is the ratio of their times.
 *
 *   bun bench/mail.ts [--rounds 8] [--creates 500] [--creators 16]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { API_KEY, freePort, outgate } from "./parts/processes.ts";
import { quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "8" },
    creates: { type: "string", default: "500" },
    creators: { type: "string", default: "16" },
  },
});
const rounds = Number(values.rounds);
const creates = Number(values.creates);
const creators = Number(values.creators);

let taken = 0;
const hanging = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open: () => void (taken += 1),
    data() {},
  },
});
const env = {
  MAILGUN_API_KEY: "key-bench",
  MAILGUN_DOMAIN: "mg.example.com",
  MAILGUN_URL: `http://127.0.0.1:${hanging.port}`,
};
const folders = [newFolder(), newFolder()] as const;
await using withMail = await outgate({
  port: await freePort(),
  folder: folders[0],
  env: { ...env, LOG_LEVEL: "warn" },
});
await using without = await outgate({ port: await freePort(), folder: folders[1], env: { LOG_LEVEL: "warn" } });

const kept: { p50: number; p99: number }[] = [];
for (let round = 0; round <= rounds; round += 1) {
  // Alternating, so that neither always meets a busy machine.
  const [first, second] = round % 2 === 0 ? [withMail.port, without.port] : [without.port, withMail.port];
  const times = new Map([[first, await createAll(first, round)]]);
  times.set(second, await createAll(second, round));
  const [hangs, plain] = [times.get(withMail.port) ?? [], times.get(without.port) ?? []];
  const ratio = (share: number) => quantile(hangs, share) / quantile(plain, share);
  if (round === 0) continue;
  kept.push({ p50: ratio(0.5), p99: ratio(0.99) });
  const ms = (all: readonly number[], share: number) => quantile(all, share).toFixed(2);
  console.log(
    `round ${round}: p99 ${ms(hangs, 0.99)} ms with a provider that hangs, ${ms(plain, 0.99)} ms without mail ` +
      `(p50 ${ms(hangs, 0.5)} and ${ms(plain, 0.5)})`,
  );
}
const spread = (of: "p50" | "p99") => {
  const all = kept.map((round) => round[of]);
  return `${quantile(all, 0.5).toFixed(2)} (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
};
console.log(`ratio of p99 ${spread("p99")}, of p50 ${spread("p50")}; connections that the provider holds ${taken}`);
hanging.stop(true);
await withMail[Symbol.asyncDispose]();
await without[Symbol.asyncDispose]();
for (const folder of folders) rmSync(folder, { recursive: true, force: true });
process.exit(0);

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "outgate-mail-"));
}

/** Creates held actions, several at a time; how long each took, in milliseconds. */
async function createAll(port: number, round: number): Promise<readonly number[]> {
  const times: number[] = [];
  let next = 0;
  const creator = async () => {
    while (next < creates) {
      next += 1;
      const mailed = { notify: { email: `approver-${round}-${next}@example.com` } };
      const action = { url: "http://127.0.0.1:9/", approve: true, body: { round, n: next } };
      const startedMs = performance.now();
      const answer = await fetch(`http://127.0.0.1:${port}/v1/actions`, {
        method: "POST",
        headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
        body: JSON.stringify(port === withMail.port ? { ...action, ...mailed } : action),
      });
      await answer.text();
      if (answer.status !== 201) throw new Error(`A create was answered with ${answer.status}.`);
      times.push(performance.now() - startedMs);
    }
  };
  await Promise.all(Array.from({ length: creators }, creator));
  return times;
}
