/** graphile-worker with the batches that its documentation recommends for throughput. It deletes what is done, and keeps no result. */
import { Logger, run } from "graphile-worker";
import { Pool } from "pg";
import { call, CONCURRENCY, type Job, RETRIES, servePeer } from "./serve.ts";

const connectionString = process.env["DATABASE_URL"] ?? "";
const pool = new Pool({ connectionString, max: 1 });
const runner = await run({
  noHandleSignals: true,
  logger: new Logger(() => () => {}),
  preset: {
    worker: {
      connectionString,
      maxPoolSize: 12,
      concurrentJobs: CONCURRENCY,
      localQueue: { size: CONCURRENCY },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  taskList: { call: async (payload) => void (await call(payload as Job)) },
});

servePeer({
  add: async (job) => (await runner.addJob("call", job, { maxAttempts: RETRIES })).id,
  hasWork: async () => (await pool.query("SELECT 1 FROM graphile_worker.jobs LIMIT 1")).rows.length > 0,
});
