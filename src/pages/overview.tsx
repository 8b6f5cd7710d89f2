/** @jsxImportSource hono/jsx */
import type { ScheduledRetries } from "../../db/store.ts";
import type { FailingHost, Overview, OverviewSlot } from "../events/overview.ts";
import { maskText } from "../receipts/masking.ts";
import { ACTIONS_PATH, Layout, render } from "./layout.tsx";
import { Card, PageHead, Table, Time, UntrustedText } from "./parts.tsx";
import { counted, duration, number, type PageUser, timeAgo } from "./text.ts";

interface OverviewPageProps {
  readonly user: PageUser;
  readonly overview: Overview;
  readonly retries: ScheduledRetries;
  readonly now: Date;
}

/** The last 24 hours of an account, and its scheduled retries. */
export function overviewPage({ user, overview, retries, now }: OverviewPageProps): string {
  const { slots, latency, failing } = overview;
  return render(
    <Layout title="Overview" nav="Overview" user={user} width="wide">
      <PageHead title="Overview">
        <Window overview={overview} />
      </PageHead>
      <Figures overview={overview} />
      <div class="pair">
        <Chart
          id="throughput"
          title="Finished actions"
          layers={[
            { name: "Completed", look: "good" },
            { name: "Failed", look: "bad" },
          ]}
          isStacked
          slots={slots}
          valuesOf={({ completed, failed }) => [completed, failed]}
          top={(value) => `${number(value)} in half an hour`}
          summary={`Finished actions, in half hours: ${number(total(slots, "completed"))} completed and ${number(total(slots, "failed"))} failed in all.`}
        />
        <Chart
          id="latency"
          title="Latency of attempts"
          layers={[
            { name: "Median", look: "busy" },
            { name: "95 %", look: "faint" },
          ]}
          isStacked={false}
          slots={slots}
          valuesOf={({ p50Ms, p95Ms }) => [p50Ms ?? 0, p95Ms ?? 0]}
          top={duration}
          summary={`Latency of attempts, in half hours: ${latency === null ? "no attempts yet" : `median ${duration(latency.p50Ms)}, 95 % ${duration(latency.p95Ms)}`} overall.`}
        />
      </div>
      <HalfHours slots={slots} />
      <div class="pair">
        <FailingHosts hosts={failing} now={now} />
        <Retries {...retries} now={now} />
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

function total(slots: readonly OverviewSlot[], name: "created" | "completed" | "failed" | "attempts"): number {
  return slots.reduce((sum, slot) => sum + slot[name], 0);
}

function Figures({ overview: { slots, latency } }: Pick<OverviewPageProps, "overview">) {
  const [completed, failed] = [total(slots, "completed"), total(slots, "failed")];
  const [median, others] =
    latency === null
      ? ["–", "no attempts yet"]
      : [duration(latency.p50Ms), `95 %: ${duration(latency.p95Ms)} · 99 %: ${duration(latency.p99Ms)}`];
  const figures = [
    ["Created", number(total(slots, "created")), null],
    ["Success rate", rate(completed, failed), `${number(completed)} of ${number(completed + failed)} finished`],
    ["Failed", number(failed), `${number(total(slots, "attempts"))} attempts in all`],
    ["Latency, median", median, others],
  ] as const;
  return (
    <dl class="figures">
      {figures.map(([name, value, more]) => (
        <div class="card figure">
          <dt class="quiet small">{name}</dt>
          <dd>
            <b>{value}</b>
            {more === null ? null : <span class="quiet small">{more}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Rounded down, so that a single failure never shows as 100 %. */
function rate(completed: number, failed: number): string {
  const all = completed + failed;
  return all === 0 ? "–" : `${Math.floor((completed / all) * 1_000) / 10} %`;
}

function FailingHosts({ hosts, now }: { readonly hosts: readonly FailingHost[]; readonly now: Date }) {
  return (
    <Card id="failing" title="Failing hosts">
      {hosts.length === 0 ? <p class="quiet">No failed attempts.</p> : null}
      <ul class="plain">
        {hosts.map(({ host, failed, attempts, lastError, lastFailedAt }) => (
          <li class="row-split">
            <div>
              <p class="line">
                <HostLink filters={{ host }} />
              </p>
              <p class="small reason">
                <UntrustedText text={maskText(lastError, "decider")} />{" "}
                <span class="quiet">{`${sentenceCase(timeAgo(now.getTime() - lastFailedAt.getTime()))}.`}</span>
              </p>
            </div>
            <p class="small">
              <b>{number(failed)}</b> <span class="quiet">of {counted(attempts, "attempt")}</span>
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Retries({ count, due, isCut, hosts, now }: ScheduledRetries & { readonly now: Date }) {
  const least = isCut ? "At least " : "";
  const untilNext = (at: Date) => duration(Math.max(0, Math.ceil((at.getTime() - now.getTime()) / 1_000)) * 1_000);
  return (
    <Card id="sleeping" title="Scheduled calls">
      <p class="quiet">
        {count === 0 && !isCut ? "No calls are scheduled." : `${least}${counted(count, "call")} scheduled.`}
        {due === 0 ? "" : ` ${number(due)} more ${due === 1 ? "is" : "are"} due now.`}
      </p>
      <ul class="plain">
        {hosts.map((host) => (
          <li class="row-split">
            <p class="line">
              <HostLink filters={{ host: host.host, status: "pending" }} />
            </p>
            <p class="small">
              <b>{number(host.count)}</b>{" "}
              <span class="quiet">{`${host.count === 1 ? "action" : "actions"}, next in ${untilNext(host.nextAt)}`}</span>
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function HostLink({ filters }: { readonly filters: { readonly host: string; readonly status?: "pending" } }) {
  return (
    <a href={`${ACTIONS_PATH}?${new URLSearchParams(filters).toString()}`}>
      <UntrustedText text={filters.host} />
    </a>
  );
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Both charts as a table. */
function HalfHours({ slots }: Pick<Overview, "slots">) {
  const busy = slots.filter(({ created, attempts }) => created + attempts > 0);
  if (busy.length === 0) return null;
  return (
    <details class="card">
      <summary>Show as a table</summary>
      <Table
        caption="The half hours in which something happened"
        heads={["From", "Created", "Completed", "Failed", "Attempts", "Median", "95 %"]}
        isWide
        rows={busy.map(({ at, created, completed, failed, attempts, p50Ms, p95Ms }) => [
          timeOfDay(at),
          ...[created, completed, failed, attempts].map(number),
          ...[p50Ms, p95Ms].map((ms) => (ms === null ? "–" : duration(ms))),
        ])}
      />
    </details>
  );
}

/** In UTC. */
function timeOfDay(at: Date): string {
  return at.toISOString().slice(11, 16);
}

interface ChartProps {
  readonly id: string;
  readonly title: string;
  /** From bottom to top. */
  readonly layers: readonly { readonly name: string; readonly look: "good" | "bad" | "busy" | "faint" }[];
  /** Stacked, or drawn in front of each other with the first layer in front. */
  readonly isStacked: boolean;
  /** One bar each, oldest first. */
  readonly slots: readonly OverviewSlot[];
  /** The values of a bar, one per layer. */
  readonly valuesOf: (slot: OverviewSlot) => readonly number[];
  /** The label of the highest bar. */
  readonly top: (value: number) => string;
  /** For screen readers. */
  readonly summary: string;
}

/** A bar chart as SVG, without scripts. */
function Chart(props: ChartProps) {
  const { id, title, layers, isStacked, slots, valuesOf, top } = props;
  const highest = Math.max(
    0,
    ...slots.map((slot) => (isStacked ? sumOf(valuesOf(slot)) : Math.max(0, ...valuesOf(slot)))),
  );
  const [first] = slots;
  return (
    <figure class="card" aria-labelledby={id}>
      <figcaption class="chart-head">
        <h2 id={id}>{title}</h2>
        <ul class="legend small">
          {layers.map(({ name, look }) => (
            <li class={`key-${look}`}>{name}</li>
          ))}
        </ul>
      </figcaption>
      <div>
        <p class="chart-top small quiet">{highest === 0 ? "No data yet" : top(highest)}</p>
        <Bars {...props} highest={highest} />
        <p class="chart-ends small quiet">
          <span>{first === undefined ? "" : timeOfDay(first.at)}</span>
          <span>now</span>
        </p>
      </div>
    </figure>
  );
}

const [BAR_WIDTH, BAR_GAP, HEIGHT] = [8, 2, 100];

function Bars({ layers, isStacked, slots, valuesOf, summary, highest }: ChartProps & { readonly highest: number }) {
  const bars = slots.map(valuesOf);
  const width = bars.length * (BAR_WIDTH + BAR_GAP);
  const pieces = bars.map((values) => piecesOf(values, isStacked, highest));
  const paths = layers.map(({ look }, layer) => (
    <path class={`bar-${look}`} d={pieces.map((bar, at) => outline(at, bar[layer] ?? null)).join("")} />
  ));
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
      <path class="bar-ground" d={bars.map((_, at) => outline(at, { y: 0, height: HEIGHT })).join("")} />
      {/* What is drawn last stands in front. */}
      {isStacked ? paths : paths.toReversed()}
    </svg>
  );
}

interface Piece {
  readonly y: number;
  readonly height: number;
}

/** One path for all bars of a layer, which is a tenth of the size of separate elements. */
function outline(at: number, piece: Piece | null): string {
  if (piece === null) return "";
  return `M${at * (BAR_WIDTH + BAR_GAP)} ${piece.y}h${BAR_WIDTH}v${piece.height}h-${BAR_WIDTH}z`;
}

/** Every value above 0 stays visible. */
const HEIGHT_MIN = 1.5;

/** The position of each layer of a bar; null for 0. */
function piecesOf(values: readonly number[], isStacked: boolean, highest: number): readonly (Piece | null)[] {
  let ground = HEIGHT;
  return values.map((value) => {
    if (value === 0) return null;
    const height = Math.min(round(Math.max(HEIGHT_MIN, (value / highest) * HEIGHT)), ground);
    const y = round(ground - height);
    if (isStacked) ground = y;
    return { y, height };
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
