/**
 * What many would write themselves on PostgreSQL, to compare with: a table of jobs, an INSERT for each request, workers that
 * claim with SKIP LOCKED, call the target and write the result. No lanes, no approvals, no timeline, no callbacks, no retries.
 * It makes a connection for each call; `KEPT=1` keeps them.
 */
import { SQL } from "bun";

const WORKERS = 4;
const isKept = process.env["KEPT"] === "1";
const CLAIMED = 32;
const IDLE_MS = 5;

const sql = new SQL(process.env["QUEUE_URL"] ?? "", { max: 12 });
const session = new Bun.FetchSession({ keepAlive: isKept });
await sql`CREATE TABLE IF NOT EXISTS jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, url text NOT NULL, body text NOT NULL,
  status text NOT NULL DEFAULT 'pending', code int, answer text)`;
await sql`CREATE INDEX IF NOT EXISTS jobs_pending ON jobs (id) WHERE status = 'pending'`;
await sql`CREATE INDEX IF NOT EXISTS jobs_active ON jobs (id) WHERE status = 'active'`;

interface Job {
  readonly id: string;
  readonly url: string;
  readonly body: string;
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    if (request.method === "GET") {
      const status = new URL(request.url).searchParams.get("status");
      const rows = (await sql`SELECT id FROM jobs WHERE status = ${status} LIMIT 1`) as readonly unknown[];
      return Response.json({ data: [...rows] });
    }
    const { url, body } = (await request.json()) as { url: string; body: unknown };
    const rows =
      (await sql`INSERT INTO jobs (url, body) VALUES (${url}, ${JSON.stringify(body)}) RETURNING id`) as readonly unknown[];
    return Response.json(rows[0], { status: 201 });
  },
});
console.log(server.port);
await Promise.all(Array.from({ length: WORKERS }, work));

async function work(): Promise<never> {
  for (;;) {
    const jobs = (await sql`
      UPDATE jobs SET status = 'active' WHERE id = ANY (ARRAY(
        SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT ${CLAIMED} FOR UPDATE SKIP LOCKED))
      RETURNING id, url, body`) as readonly Job[];
    if (jobs.length === 0) await Bun.sleep(IDLE_MS);
    else await Promise.all(jobs.map(send));
  }
}

async function send({ id, url, body }: Job): Promise<void> {
  const headers = { "Content-Type": "application/json", Connection: isKept ? "keep-alive" : "close" };
  const answer = await session.fetch(url, { method: "POST", body, headers });
  const text = await answer.text();
  await sql`UPDATE jobs SET status = 'completed', code = ${answer.status}, answer = ${text} WHERE id = ${id}`;
}
