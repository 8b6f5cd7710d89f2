/** BullMQ on a Redis that flushes its log at every write; jobs and what they returned are kept, as by default. */
import { Queue, Worker } from "bullmq";
import { call, CONCURRENCY, type Job, RETRIES, servePeer } from "./serve.ts";

const connection = { host: "127.0.0.1", port: Number(process.env["REDIS_PORT"]), maxRetriesPerRequest: null };
const queue = new Queue<Job>("calls", { connection });
const worker = new Worker<Job>("calls", ({ data }) => call(data), { connection, concurrency: CONCURRENCY });
worker.on("error", (error) => console.error(error));
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);

servePeer({
  add: async (job) => {
    const { id } = await queue.add("call", job, { attempts: RETRIES, backoff: { type: "exponential", delay: 2_000 } });
    return String(id);
  },
  hasWork: async () => {
    const counts = await queue.getJobCounts("waiting", "active", "delayed", "prioritized");
    return Object.values(counts).some((count) => count > 0);
  },
});
