import { askAsOwner } from "../../test/support/service.ts";
import type { ClusterNode } from "../../test/support/cluster/node.ts";

/** A call to a database that does not answer ends after its deadline; one that is refused at once. */
const ANSWER_MS_MAX = 12_000;
const WORKS_MS_MAX = 50_000;
const PROBE_EACH_MS = 100;

/** What a node answers to a create while it has no database. */
export interface Refusal {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly tookMs: number;
}

export async function refusalOf({ url }: Pick<ClusterNode, "url">): Promise<Refusal> {
  const startedMs = performance.now();
  const answer = await create(url, "http://127.0.0.1:9/");
  const retryAfter = answer?.headers.get("retry-after") ?? null;
  return { status: answer?.status ?? 0, retryAfter, tookMs: performance.now() - startedMs };
}

/** How long it takes until a node stores an action. */
export async function worksAfter({ url }: Pick<ClusterNode, "url">, targetUrl: string): Promise<number> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < WORKS_MS_MAX) {
    if ((await create(url, targetUrl))?.status === 201) break;
    await Bun.sleep(20);
  }
  return performance.now() - startedMs;
}

/** Creates on one node, again and again, for as long as something else happens: the longest that one took. */
export async function longestCreate(
  node: Pick<ClusterNode, "url">,
  targetUrl: string,
  meanwhile: Promise<unknown>,
): Promise<number> {
  let isOver = false;
  const over = meanwhile.finally(() => (isOver = true));
  let longestMs = 0;
  while (!isOver) {
    longestMs = Math.max(longestMs, await worksAfter(node, targetUrl));
    await Bun.sleep(PROBE_EACH_MS);
  }
  await over;
  return longestMs;
}

async function create(url: string, targetUrl: string): Promise<Response | null> {
  const body = JSON.stringify({ url: targetUrl, body: {} });
  const signal = AbortSignal.timeout(ANSWER_MS_MAX);
  const answer = await askAsOwner(`${url}/v1/actions`, { method: "POST", body, signal });
  await answer?.arrayBuffer().catch(() => null);
  return answer;
}
