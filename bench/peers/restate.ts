/**
 * The service that Restate calls: on Bun, where it was a quarter to twice as fast as on Node 20. Callers create at
 * Restate's own ingress; here is only the handler, and on a second port the question whether all is done.
 */
import { type Context, serve, service } from "@restatedev/restate-sdk";
import { call, type Job, RETRIES, servePeer } from "./serve.ts";

const admin = process.env["ADMIN_URL"] ?? "";
const JSON_BOTH = { "Content-Type": "application/json", Accept: "application/json" };

const calls = service({
  name: "calls",
  handlers: {
    call: (ctx: Context, job: Job) =>
      ctx.run("call", () => call(job), { maxRetryAttempts: RETRIES, initialRetryInterval: { seconds: 2 } }),
  },
});

const port = await serve({ services: [calls], port: 0 });
const uri = `http://127.0.0.1:${port}`;
const registered = await fetch(`${admin}/deployments`, {
  method: "POST",
  headers: JSON_BOTH,
  body: JSON.stringify({ uri }),
});
if (!registered.ok) throw new Error(`Restate refused the service: ${await registered.text()}`);

servePeer({
  add: () => Promise.reject(new Error("Restate's own ingress creates.")),
  hasWork: async () => {
    const query = "SELECT id FROM sys_invocation WHERE status <> 'completed' LIMIT 1";
    const answer = await fetch(`${admin}/query`, {
      method: "POST",
      headers: JSON_BOTH,
      body: JSON.stringify({ query }),
    });
    return ((await answer.json()) as { rows: unknown[] }).rows.length > 0;
  },
});
