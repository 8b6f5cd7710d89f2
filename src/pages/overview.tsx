/** @jsxImportSource hono/jsx */
import type { FailingHost, Overview, OverviewSlot } from "../events/overview.ts";
import type { ScheduledRetries } from "../../db/store.ts";
import { UntrustedText } from "./code.tsx";
import { Layout, render } from "./layout.tsx";
import { Time, Table } from "./parts.tsx";
import { type PageUser, agoWords, counted, duration, number } from "./words.ts";
import { maskText } from "../receipts/masking.ts";
import { Chart } from "./chart.tsx";

export interface OverviewPageProps {
  readonly user: PageUser;
  readonly overview: Overview;
  readonly retries: ScheduledRetries;
  readonly now: Date;
}

/** The last 24 hours of an account, and its scheduled retries. */
export function overviewPage({ user, overview, retries, now }: OverviewPageProps): string {
  return render(
    <Layout title="Overview" place="Overview" user={user} width="wide">
      <div class="head">
        <h1>Overview</h1>
        <Window overview={overview} />
      </div>
      <Figures overview={overview} />
      <div class="pair">
        <Throughput overview={overview} />
        <Latency overview={overview} />
      </div>
      <HalfHours overview={overview} />
      <div class="pair">
        <FailingHosts hosts={overview.hosts} now={now} />
        <Retries retries={retries} now={now} />
      </div>
    </Layout>,
  );
}

/** Says which time the numbers cover. */
function Window({ overview: { since, slots } }: Pick<OverviewPageProps, "overview">) {
  const isWhole = since.getTime() <= (slots[0]?.at.getTime() ?? 0);
  if (isWhole) return <p class="quiet">The last 24 hours, in half-hour steps. Times are in UTC.</p>;
  return (
    <p class="quiet">
      Counted since <Time at={since} />, less than 24 hours: earlier data is not included.
    </p>
  );
}

function Figures({ overview: { slots, latency } }: Pick<OverviewPageProps, "overview">) {
  const total = (of: (slot: OverviewSlot) => number) => slots.reduce((all, slot) => all + of(slot), 0);
  const [completed, failed] = [total((slot) => slot.completed), total((slot) => slot.failed)];
  const attempts = total((slot) => slot.attempts);
  return (
    <dl class="figures">
      <Figure name="Created" value={number(total((slot) => slot.created))} />
      <Figure
        name="Success rate"
        value={rate(completed, failed)}
        more={`${number(completed)} of ${number(completed + failed)} finished`}
      />
      <Figure name="Failed" value={number(failed)} more={`${number(attempts)} attempts in all`} />
      <Figure
        name="Latency, median"
        value={latency === null ? "–" : duration(latency.p50Ms)}
        more={
          latency === null ? "no attempts yet" : `95 %: ${duration(latency.p95Ms)} · 99 %: ${duration(latency.p99Ms)}`
        }
      />
    </dl>
  );
}

function Figure({ name, value, more = "" }: { readonly name: string; readonly value: string; readonly more?: string }) {
  return (
    <div class="card figure">
      <dt class="quiet small">{name}</dt>
      <dd>
        <b>{value}</b>
        {more === "" ? null : <span class="quiet small">{more}</span>}
      </dd>
    </div>
  );
}

function FailingHosts({ hosts, now }: { readonly hosts: readonly FailingHost[]; readonly now: Date }) {
  return (
    <section class="card" aria-labelledby="failing">
      <h2 id="failing">Failing hosts</h2>
      {hosts.length === 0 ? <p class="quiet">No failed attempts.</p> : null}
      <ul class="plain">
        {hosts.map(({ host, failed, attempts, lastError, lastFailedAt }) => (
          <li class="row-split">
            <div>
              <p class="line">
                <HostLink host={host} />
              </p>
              <p class="small reason">
                <UntrustedText text={maskText(lastError, "decider")} />{" "}
                <span class="quiet">{`${sentenceCase(agoWords(now.getTime() - lastFailedAt.getTime()))}.`}</span>
              </p>
            </div>
            <p class="small">
              <b>{number(failed)}</b> <span class="quiet">of {counted(attempts, "attempt")}</span>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Retries({ retries, now }: Pick<OverviewPageProps, "retries" | "now">) {
  const { count, due, isCut, hosts } = retries;
  const least = isCut ? "At least " : "";
  return (
    <section class="card" aria-labelledby="sleeping">
      <h2 id="sleeping">Scheduled retries</h2>
      <p class="quiet">
        {count === 0 && !isCut ? "No retries are scheduled." : `${least}${counted(count, "action")} will be retried.`}
        {due === 0 ? "" : ` ${number(due)} more ${due === 1 ? "is" : "are"} due now.`}
      </p>
      <ul class="plain">
        {hosts.map((host) => (
          <li class="row-split">
            <p class="line">
              <HostLink host={host.host} status="pending" />
            </p>
            <p class="small">
              <b>{number(host.count)}</b>{" "}
              <span class="quiet">
                {host.count === 1 ? "action" : "actions"}, next in{" "}
                {duration(Math.max(0, Math.ceil((host.nextAt.getTime() - now.getTime()) / 1_000)) * 1_000)}
              </span>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function HostLink({ host, status }: { readonly host: string; readonly status?: "pending" }) {
  const query = new URLSearchParams(status === undefined ? { host } : { host, status });
  return (
    <a href={`/actions?${query.toString()}`}>
      <UntrustedText text={host} />
    </a>
  );
}

function sentenceCase(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Rounded down, so that a single failure never shows as 100 %. */
function rate(completed: number, failed: number): string {
  const all = completed + failed;
  return all === 0 ? "–" : `${Math.floor((completed / all) * 1_000) / 10} %`;
}

interface OverviewProps {
  readonly overview: Overview;
}

export function Throughput({ overview: { slots } }: OverviewProps) {
  const total = (of: "completed" | "failed") => number(slots.reduce((all, slot) => all + slot[of], 0));
  return (
    <Chart
      id="throughput"
      title="Finished actions"
      layers={[
        { name: "Completed", look: "good" },
        { name: "Failed", look: "bad" },
      ]}
      isStacked
      bars={slots.map(({ completed, failed }) => [completed, failed])}
      top={(value) => `${number(value)} in half an hour`}
      ends={endsOf(slots)}
      summary={`Finished actions, in half hours: ${total("completed")} completed and ${total("failed")} failed in all.`}
    />
  );
}

export function Latency({ overview: { slots, latency } }: OverviewProps) {
  const words =
    latency === null ? "no attempts yet" : `median ${duration(latency.p50Ms)}, 95 % ${duration(latency.p95Ms)}`;
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
      summary={`Latency of attempts, in half hours: ${words} overall.`}
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
      <summary>Show as a table</summary>
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
