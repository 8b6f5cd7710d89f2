import { join } from "node:path";
import { isInside } from "../../test/support/namespace.ts";
import { askAsOwner, Service } from "../../test/support/service.ts";
import { storedIn } from "../../test/support/faults/database.ts";
import { nft, packetsDropped, reportFromInside } from "./inside.ts";
import { broken, type FaultReport } from "../../test/support/faults/report.ts";

const [TARGET_PORT, SERVICE_PORT] = [9_001, 9_002];
const LOST_PERCENT = 15;
const ASK_AGAIN_MS = 1_500;
const RETRIES = 8;
const RUN_MS_MAX = 120_000;

/** One packet in seven is lost, on the way to the service and from it to its target, in a network of our own. */
export async function packetsLost(actions: number): Promise<FaultReport> {
  return reportFromInside(import.meta.path, String(actions), RUN_MS_MAX);
}

async function inside(actions: number): Promise<FaultReport> {
  const received: string[] = [];
  const target = Bun.serve({
    port: TARGET_PORT,
    hostname: "127.0.0.1",
    async fetch(request) {
      await request.text();
      received.push(request.headers.get("webhook-id") ?? "");
      return new Response("ok");
    },
  });
  const env = { PORT: String(SERVICE_PORT), ATTEMPT_TIMEOUT_MS: "2000", RETRY_BASE_MS: "20", RETRY_CAP_MS: "200" };
  await using service = new Service({ env: { ...env, RATE_LIMIT_PER_SECOND: "0" } });
  await service.ready();
  const lossy = [TARGET_PORT, SERVICE_PORT].flatMap((port) =>
    ["sport", "dport"].map(
      (end) => `add rule inet f i tcp ${end} ${port} numgen random mod 100 < ${LOST_PERCENT} counter drop`,
    ),
  );
  const rules = ["add table inet f", "add chain inet f i { type filter hook input priority 0; }", ...lossy].join("; ");
  nft(rules);

  /** As a careful client: no answer is asked for again, under the same key. */
  const create = async (key: string): Promise<string> => {
    for (;;) {
      const answer = await askAsOwner(`http://127.0.0.1:${SERVICE_PORT}/v1/actions`, {
        method: "POST",
        headers: { "Idempotency-Key": key },
        body: JSON.stringify({ url: `http://127.0.0.1:${TARGET_PORT}/`, retries: RETRIES }),
        signal: AbortSignal.timeout(ASK_AGAIN_MS),
      });
      const created = (await answer?.json().catch(() => null)) as { id: string } | null | undefined;
      if (created) return created.id;
    }
  };
  /** The action when it has ended, asked for again and again. */
  const ended = async (id: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const action = await service
        .request(`/v1/actions/${id}`, { signal: AbortSignal.timeout(ASK_AGAIN_MS) })
        .then((answer) => answer.json() as Promise<Record<string, unknown>>)
        .catch(() => null);
      if (action !== null && action["finished_at"] !== null) return action;
      await Bun.sleep(50);
    }
  };
  const ids = await Promise.all(Array.from({ length: actions }, (_, at) => create(`key-${at}`)));
  const finals = await Promise.all(ids.map(ended));
  const stored = storedIn(join(service.folder, "data"));
  const sends = Map.groupBy(received, (id) => id);
  const most = Math.max(...[...sends.values()].map((calls) => calls.length));
  const completed = finals.filter(({ status }) => status === "completed").length;
  const dropped = packetsDropped("f");
  await target.stop(true);
  return {
    figures: { actions, stored: stored.actions.size, completed, received: received.length, most, dropped },
    problems: broken({
      "packets were lost": dropped > actions,
      "every create under one key is one action": new Set(ids).size === actions && stored.actions.size === actions,
      "every action ends": finals.every(({ status }) => status === "completed" || status === "failed"),
      "nearly all arrive": completed >= actions * 0.9,
      "no more sends than allowed": most <= RETRIES,
      "what is completed has arrived": finals.every(
        ({ status, id }) => status !== "completed" || sends.has(String(id)),
      ),
    }),
  };
}

if (isInside() && import.meta.main) {
  console.log(JSON.stringify(await inside(Number(process.argv[2]))));
  process.exit(0);
}
