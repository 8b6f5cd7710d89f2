/** pg-boss, woken by NOTIFY, in batches; jobs and what they returned are kept, as by default. */
import { PgBoss } from "pg-boss";
import { call, CONCURRENCY, type Job, RETRIES, servePeer } from "./serve.ts";

const BATCH = Number(process.env["BATCH"] ?? 32);
const QUEUE = "calls";
const boss = new PgBoss({ connectionString: process.env["DATABASE_URL"] ?? "", max: 12, useListenNotify: true });
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue(QUEUE, { retryLimit: RETRIES - 1, retryDelay: 2, retryBackoff: true, notify: true });
await boss.work<Job>(
  QUEUE,
  { batchSize: BATCH, localConcurrency: CONCURRENCY / BATCH, pollingIntervalSeconds: 0.5, perJobResults: true },
  (jobs) =>
    Promise.all(
      jobs.map(async ({ id, data }) => {
        try {
          return { id, status: "completed", output: await call(data) };
        } catch (error) {
          return { id, status: "failed", output: { message: String(error) } };
        }
      }),
    ),
);

servePeer({
  add: async (job) => String(await boss.send(QUEUE, job)),
  hasWork: async () => {
    const text = "SELECT 1 FROM pgboss.job WHERE name = $1 AND state < 'completed' LIMIT 1";
    return (await boss.getDb().executeSql(text, [QUEUE])).rows.length > 0;
  },
});
