/** What is the same for all peers that run on Bun: the create that the bench asks for, and the call that a job makes. */

export interface Job {
  readonly url: string;
  readonly body: unknown;
}

export interface Peer {
  /** Resolves with the job's id once it is stored. */
  readonly add: (job: Job) => Promise<string>;
  /** Whether any job is not finished yet. */
  readonly hasWork: () => Promise<boolean>;
}

/** Jobs at a time. */
export const CONCURRENCY = Number(process.env["CONCURRENCY"] ?? 256);
export const RETRIES = 3;
const TIMEOUT_MS = 30_000;
const HAS_TIMER = process.env["CALL_TIMER"] !== "0";

/** Serves `POST` to create and `GET` to ask whether all is done, and prints the port. */
export function servePeer({ add, hasWork }: Peer): void {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method === "GET") return Response.json({ data: (await hasWork()) ? [1] : [] });
      const { url, body } = (await request.json()) as Job;
      return Response.json({ id: await add({ url, body }) }, { status: 201 });
    },
  });
  console.log(server.port);
}

/** Makes the call of a job on kept connections, as `fetch` does unless told otherwise. */
export async function call({ url, body }: Job): Promise<{ readonly code: number; readonly body: string }> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    ...(HAS_TIMER && { signal: AbortSignal.timeout(TIMEOUT_MS) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`The target answered ${answer.status}.`);
  return { code: answer.status, body: text };
}
