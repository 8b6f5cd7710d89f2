/** @jsxImportSource hono/jsx */
import type { Overview, OverviewSlot } from "../domain/overview.ts";
import { Chart } from "./chart.tsx";
import { Table } from "./parts.tsx";
import { duration, number } from "./words.ts";

interface OverviewProps {
  readonly overview: Overview;
}

/** How many actions ended, and how. */
export function Throughput({ overview: { slots } }: OverviewProps) {
  const total = (of: "completed" | "failed") => number(slots.reduce((all, slot) => all + slot[of], 0));
  return (
    <Chart
      id="throughput"
      title="Actions that ended"
      layers={[
        { name: "Completed", look: "good" },
        { name: "Failed", look: "bad" },
      ]}
      isStacked
      bars={slots.map(({ completed, failed }) => [completed, failed])}
      top={(value) => `${number(value)} in half an hour`}
      ends={endsOf(slots)}
      summary={`Actions that ended, in half hours: ${total("completed")} completed and ${total("failed")} failed in all.`}
    />
  );
}

/** How long attempts took. */
export function Latency({ overview: { slots, latency } }: OverviewProps) {
  const words =
    latency === null ? "no attempt yet" : `median ${duration(latency.p50Ms)}, 95 % ${duration(latency.p95Ms)}`;
  return (
    <Chart
      id="latency"
      title="Latency of attempts"
      layers={[
        { name: "Median", look: "busy" },
        { name: "95 %", look: "faint" },
      ]}
      isStacked={false}
      bars={slots.map(({ p50Ms, p95Ms }) => [p50Ms ?? 0, p95Ms ?? 0])}
      top={duration}
      ends={endsOf(slots)}
      summary={`Latency of attempts, in half hours: in all ${words}.`}
    />
  );
}

/** Both charts as a table. */
export function HalfHours({ overview: { slots } }: OverviewProps) {
  const busy = slots.filter(({ created, attempts }) => created + attempts > 0);
  if (busy.length === 0) return null;
  const heads = ["From", "Created", "Completed", "Failed", "Attempts", "Median", "95 %"];
  return (
    <details class="card">
      <summary>Both as a table</summary>
      <Table caption="The half hours in which something happened" heads={heads} isWide>
        {busy.map(({ at, created, completed, failed, attempts, p50Ms, p95Ms }) => (
          <tr>
            <td>{timeOfDay(at)}</td>
            {[created, completed, failed, attempts].map((count) => (
              <td>{number(count)}</td>
            ))}
            {[p50Ms, p95Ms].map((ms) => (
              <td>{ms === null ? "–" : duration(ms)}</td>
            ))}
          </tr>
        ))}
      </Table>
    </details>
  );
}

function endsOf(slots: readonly OverviewSlot[]) {
  const first = slots[0];
  return [first === undefined ? "" : timeOfDay(first.at), "now"] as const;
}

/** In UTC. */
function timeOfDay(at: Date): string {
  return at.toISOString().slice(11, 16);
}
