/** @jsxImportSource hono/jsx */
import Type from "typebox";
import type { Child } from "hono/jsx";
import { COUNTED_MAX, DAY_MS, HOUR_MS, OVERVIEW_RANGES } from "../../core/limits.ts";
import { type OverviewRange, RANGE_NAMES, slotLengthMs } from "../../core/activity.ts";
import { mayDo, type Viewer, roleViewer } from "../../core/roles.ts";
import { OverviewParameters, RANGE_DEFAULT, type OverviewAnswer } from "../../events/overview.ts";
import type {
  Breakdown,
  HostHour,
  NamedFigures,
  OverviewFigures,
  OverviewSlot,
} from "../../events/overview-figures.ts";
import type { ScheduledRetries, WaitingApprovals } from "../../core/store.ts";
import { maskText } from "../../receipts/masking.ts";
import type { FirstStepProgress } from "../../accounts/first-steps.ts";
import { FirstStepList } from "../entry/first-steps.tsx";
import type { ListParameters } from "../../api/list-schemas.ts";
import { Chart, type ChartSlot, Sparkline, Strip, type StripCell } from "../../ui/chart.tsx";
import { FilterLinks } from "../../ui/controls.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";
import { type Age, inboxPath } from "../decisions/inbox-query.ts";
import { amountText, FIRST_STEPS_PATH, Layout, listPath, OVERVIEW_PATH, queryText, render } from "../../ui/layout.tsx";
import { ago, Card, Facts, Notice, sentence, listedTime, Table, time, until, untrusted } from "../../ui/parts.tsx";
import { counted, duration, number, type PageUser } from "../../ui/text.ts";
import { queryCheck } from "../../api/check.ts";
import { withoutEmpty } from "../../http/body.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";

/** Failing hosts on the page. Others are in the table of hosts. */
const FAILING_HOSTS_DRAWN_MAX = 5;

const VIEWS = ["charts", "table"] as const;

type OverviewView = (typeof VIEWS)[number];

/** The range, as in the API, and whether its slots are drawn or listed. */
const readQuery = queryCheck(
  Type.Object(
    { ...OverviewParameters.properties, view: Type.Optional(Type.Enum([...VIEWS])) },
    { additionalProperties: false },
  ),
);

interface OverviewPageProps extends OverviewAnswer {
  readonly user: PageUser;
  readonly view: OverviewView;
  /** The first steps; null if none are left. */
  readonly steps: FirstStepProgress | null;
  readonly now: Date;
  readonly baseUrl: string;
}

/** Words of the ranges, the distance of the labels on their axes, and whether these are times of day. */
const RANGES = {
  "1h": { name: "1 hour", slot: "1 minute", labelEveryMs: HOUR_MS / 6, labelsTimes: true },
  "24h": { name: "24 hours", slot: "30 minutes", labelEveryMs: 4 * HOUR_MS, labelsTimes: true },
  "7d": { name: "7 days", slot: "3 hours", labelEveryMs: DAY_MS, labelsTimes: false },
  "30d": { name: "30 days", slot: "12 hours", labelEveryMs: 5 * DAY_MS, labelsTimes: false },
} as const satisfies Record<OverviewRange, object>;

/** What an account did in a range, and what is waiting. Every number links to the actions that it counts. */
export function overviewPage(props: OverviewPageProps): string {
  const { user, overview, keyNames, waiting, retries, view, steps, now, baseUrl } = props;
  const viewer = roleViewer(user.role);
  const isNew = steps?.isNew === true;
  const isTable = view === "table";
  const ranges = RANGE_NAMES.map((range) => {
    return { href: overviewPath(range, view), name: RANGES[range].name, isChosen: range === overview.range };
  });
  return render(
    <Layout title="Overview" nav="Overview" user={user} width="wide" follows="all" now={now}>
      <div class="head between">
        <h1>Overview</h1>
        {isNew ? null : <FilterLinks label="Range" links={ranges} />}
      </div>
      {steps === null ? null : <FirstStepList user={user} steps={steps} baseUrl={baseUrl} />}
      {isNew ? null : (
        <>
          {gaps(overview, now)}
          {figures(overview, waiting, now)}
          {isTable ? slotTable(overview) : charts(overview)}
          <p class="between small quiet">
            <a href={overviewPath(overview.range, isTable ? "charts" : "table")}>
              {isTable ? "Show as charts" : "Show as a table"}
            </a>
            <span>
              {`Each ${isTable ? "row" : "column"} is ${RANGES[overview.range].slot}.`}
              <noscript> Times are in UTC.</noscript>
            </span>
          </p>
          {hostShares(overview, viewer)}
          <div class="pair">
            <div class="stack">
              {failingHosts(overview, viewer, now)}
              {scheduledCalls(retries, viewer, now)}
            </div>
            <div class="stack">
              {agentShares(overview, keyNames, viewer)}
              {approvals(overview, waiting, user)}
            </div>
          </div>
        </>
      )}
    </Layout>,
  );
}

function overviewPath(range: OverviewRange, view: OverviewView): string {
  return OVERVIEW_PATH + queryText({ range, view: view === "charts" ? "" : view });
}

/** Says so if the numbers don't cover the whole range. */
function gaps({ since, slots, countedUntil }: OverviewFigures, now: Date) {
  if (countedUntil !== null && countedUntil < now) {
    return (
      <Notice tone="wait">
        Counted up to {time(countedUntil)}. Newer actions are being counted; this page updates by itself.
      </Notice>
    );
  }
  if (since.getTime() <= (slots[0]?.at.getTime() ?? 0)) return null;
  return <Notice tone="wait">Counted from {time(since)}. Older actions are deleted by this server’s retention.</Notice>;
}

function total(slots: readonly OverviewSlot[], name: "created" | "completed" | "failed" | "attempts"): number {
  return slots.reduce((sum, slot) => sum + slot[name], 0);
}

/** Rounded down, so that a single failure never shows as 100 %. */
function rate({ completed, failed }: { readonly completed: number; readonly failed: number }): string {
  const all = completed + failed;
  return all === 0 ? "–" : `${Math.floor((completed / all) * 1_000) / 10} %`;
}

function durationOrNone(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? "–" : duration(ms);
}

/** The path of the list of actions created in the range. */
function rangePath({ since }: OverviewFigures, filters: ListParameters = {}): string {
  return listPath({ ...filters, created_after: withoutMs(since) });
}

function withoutMs(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}

function figures(overview: OverviewFigures, waiting: WaitingApprovals, now: Date) {
  const { slots, latency, decisions } = overview;
  const [completed, failed] = [total(slots, "completed"), total(slots, "failed")];
  const oldest = waiting.oldestAt === null ? null : sentence`Oldest ${ago(waiting.oldestAt, now)}`;
  // Shown if none is waiting.
  const decided = decisions.p50Ms === null ? "No decisions" : `Decided in ${duration(decisions.p50Ms)} (median)`;
  const successText =
    failed === 0 ? `${number(completed)} completed` : `${number(failed)} of ${number(completed + failed)} failed`;
  const latencyText =
    latency === null ? "No attempts" : `Median ${duration(latency.p50Ms)}, p99 ${duration(latency.p99Ms)}`;
  return (
    <ul class="figures">
      <Figure
        name="Created"
        href={rangePath(overview)}
        value={number(total(slots, "created"))}
        more={counted(total(slots, "attempts"), "attempt")}
        course={slots.map(({ created }) => created)}
      />
      <Figure
        name="Success"
        href={rangePath(overview, { status: ["failed"] })}
        value={rate({ completed, failed })}
        more={successText}
        course={successRates(slots)}
      />
      <Figure
        name="Latency p95"
        href={rangePath(overview, { status: ["completed", "failed"] })}
        value={durationOrNone(latency?.p95Ms)}
        more={latencyText}
        course={slots.map(({ p95Ms }) => p95Ms ?? 0)}
      />
      <Figure
        name="Awaiting approval"
        href="/approvals"
        value={amountText({ count: waiting.count, isMore: waiting.isCut })}
        more={oldest ?? decided}
      />
    </ul>
  );
}

interface FigureProps {
  readonly name: string;
  /** The list of what it counts. */
  readonly href: string;
  readonly value: string;
  readonly more: Child;
  /** Its values over the range, drawn below; left out for none. */
  readonly course?: readonly number[];
}

function Figure({ name, href, value, more, course }: FigureProps) {
  return (
    <li>
      <a class="card figure" href={href}>
        <span class="quiet small">{name}</span>
        <b>{value}</b>
        <span class="quiet small">{more}</span>
        {course === undefined ? null : <Sparkline values={course} />}
      </a>
    </li>
  );
}

/** How far the success of each slot is above that of the worst. */
function successRates(slots: readonly OverviewSlot[]): number[] {
  const shares = slots.map(({ completed, failed }) =>
    completed + failed === 0 ? 1 : completed / (completed + failed),
  );
  const worst = Math.min(...shares);
  return shares.map((share) => share - worst);
}

function charts({ range, slots, latency }: OverviewFigures) {
  const { name: rangeName, labelEveryMs, labelsTimes } = RANGES[range];
  const axis = { labelEveryMs, labelsTimes };
  const [completed, failed] = [number(total(slots, "completed")), number(total(slots, "failed"))];
  return (
    <div class="pair">
      <Chart
        id="throughput"
        title="Outcomes"
        isStacked
        series={[
          { name: "Completed", look: "good", total: completed },
          { name: "Failed", look: "bad", total: failed },
        ]}
        slots={slots.map((slot) => outcomeSlot(range, slot))}
        label={number}
        {...axis}
        summary={`Actions that finished in the last ${rangeName}: ${completed} completed, ${failed} failed.`}
        empty="No action finished in this range."
      />
      <Chart
        id="latency"
        title="Latency of attempts"
        isStacked={false}
        series={[
          { name: "p95", look: "main", total: durationOrNone(latency?.p95Ms) },
          { name: "Median", look: "second", total: durationOrNone(latency?.p50Ms) },
        ]}
        slots={slots.map(latencySlot)}
        label={duration}
        {...axis}
        summary={
          latency === null
            ? `No attempts in the last ${rangeName}.`
            : `Latency of attempts in the last ${rangeName}: median ${duration(latency.p50Ms)}, 95 % within ${duration(latency.p95Ms)}.`
        }
        empty="No attempts in this range."
      />
    </div>
  );
}

function outcomeSlot(range: OverviewRange, { at, created, completed, failed }: OverviewSlot): ChartSlot {
  const values = [completed, failed];
  if (created + completed + failed === 0) return { at, values, href: null, tip: null };
  const tip = `${number(completed)} completed, ${number(failed)} failed, ${number(created)} created`;
  return { at, values, href: slotPath(range, at), tip };
}

/** The path of the list of actions created in a slot. */
function slotPath(range: OverviewRange, at: Date): string {
  const end = new Date(at.getTime() + slotLengthMs(OVERVIEW_RANGES[range].slotMinutes));
  return listPath({ created_after: withoutMs(at), created_before: withoutMs(end) });
}

function latencySlot({ at, p50Ms, p95Ms, attempts }: OverviewSlot): ChartSlot {
  const isMeasured = p50Ms !== null && p95Ms !== null;
  const tip = isMeasured ? `p95 ${duration(p95Ms)}, median ${duration(p50Ms)}, ${counted(attempts, "attempt")}` : null;
  return { at, values: [p95Ms, p50Ms], href: null, tip };
}

function slotTable({ range, slots }: OverviewFigures) {
  const busy = slots.filter(({ created, attempts }) => created + attempts > 0).toReversed();
  return (
    <Card id="slots" title="Outcomes and latency">
      {busy.length === 0 ? (
        <p class="quiet">No actions in this range.</p>
      ) : (
        <Table
          caption="What happened, newest first"
          heads={["From", "Created", "Completed", "Failed", "Attempts", "Median", "p95"]}
          isWide
          rows={busy.map(({ at, created, completed, failed, attempts, p50Ms, p95Ms }) => [
            <a href={slotPath(range, at)}>{listedTime(at, range === "1h" ? "minute" : "short")}</a>,
            ...[created, completed, failed, attempts].map(number),
            ...[p50Ms, p95Ms].map(durationOrNone),
          ])}
        />
      )}
    </Card>
  );
}

/** A host or agent, and the filters that list its actions; null if no filter can. */
interface Listed {
  readonly name: Child;
  readonly filters: ListParameters | null;
}

/** A host as the viewer may see it. Hidden text must not appear in a link either. */
function listedHost(host: string, viewer: Viewer): Listed {
  const text = maskText(host, viewer);
  return { name: untrusted(text), filters: text === host ? { host } : null };
}

/** A link to the list of these filters. */
function listLink({ name, filters }: Listed, path: (filters: ListParameters) => string): Child {
  return filters === null ? name : <a href={path(filters)}>{name}</a>;
}

function hostShares(overview: OverviewFigures, viewer: Viewer) {
  const { named, others } = overview.hosts;
  const rows = named.map((share) => {
    const host = listedHost(share.name, viewer);
    const link = listLink(host, (filters) => rangePath(overview, filters));
    return [hostCell(link, hostStrip(overview, share.name)), ...shareCells(overview, share, host.filters)];
  });
  const legend = (
    <ul class="legend small">
      <li class="key-good">No failures</li>
      <li class="key-wait">Retried</li>
      <li class="key-bad">Failed</li>
    </ul>
  );
  return (
    <Card id="hosts" title="By host" look="shares" aside={legend}>
      {rows.length === 0 ? (
        <p class="quiet">No calls in this range.</p>
      ) : (
        <Table
          caption="The busiest hosts"
          heads={[hostCell("Host", <span>Last 24 hours</span>), ...SHARE_HEADS]}
          isWide
          rows={[...rows, ...otherCells(overview, others, "hosts")]}
        />
      )}
    </Card>
  );
}

function agentShares(overview: OverviewFigures, keyNames: OverviewAnswer["keyNames"], viewer: Viewer) {
  const { named, others } = overview.keys;
  const rows = named.map((share) => {
    const { name: id } = share;
    if (id === "") return ["Without a key", ...shareCells(overview, share, null)];
    const name = untrusted(maskText(keyNames.get(id) ?? id, viewer));
    const filters = { created_by: id };
    return [<a href={rangePath(overview, filters)}>{name}</a>, ...shareCells(overview, share, filters)];
  });
  return (
    <Card id="agents" title="By agent" look="shares">
      {rows.length === 0 ? (
        <p class="quiet">No actions in this range.</p>
      ) : (
        <Table
          caption="The busiest agents"
          heads={["Agent", ...SHARE_HEADS]}
          isWide
          rows={[...rows, ...otherCells(overview, others, "agents")]}
        />
      )}
    </Card>
  );
}

function hostCell(host: Child, strip: Child) {
  return (
    <span class="host-cell">
      <span>{host}</span>
      {strip}
    </span>
  );
}

const SHARE_HEADS = ["Created", "Success", "Failed", "Median", "p95"] as const;

/** The cells below `SHARE_HEADS`. `filters` list the counted actions; null: no filter can. */
function shareCells(
  overview: OverviewFigures,
  share: Omit<NamedFigures, "name">,
  filters: ListParameters | null,
): Child[] {
  const link = (count: number, more: ListParameters = {}) =>
    count === 0 ? "0" : listLink({ name: number(count), filters }, (own) => rangePath(overview, { ...own, ...more }));
  return [
    link(share.created),
    rate(share),
    link(share.failed, { status: ["failed"] }),
    ...[share.p50Ms, share.p95Ms].map(durationOrNone),
  ];
}

/** The row of all hosts or agents that are not named; none if all are. */
function otherCells(overview: OverviewFigures, others: Breakdown["others"], what: string): Child[][] {
  return others === null
    ? []
    : [[<span class="quiet">{`All other ${what}`}</span>, ...shareCells(overview, others, null)]];
}

/** Worst first. */
const STRIP_WORDS = [
  ["bad", "actions failed in"],
  ["wait", "retried in"],
  ["good", "no failures in"],
  ["none", "no calls in"],
] as const satisfies readonly (readonly [StripCell, string])[];

function hostStrip({ hostHours }: OverviewFigures, host: string) {
  const cells = (hostHours.get(host) ?? []).map(stripCell);
  if (cells.length === 0) return null;
  const counts = STRIP_WORDS.map(([look, words]) => ({ words, count: cells.filter((cell) => cell === look).length }));
  const words = counts
    .filter(({ count }) => count > 0)
    .map((one, at) => `${one.words} ${at === 0 ? counted(one.count, "hour") : one.count}`);
  return <Strip cells={cells} label={`Last 24 hours: ${words.join(", ")}`} />;
}

function stripCell({ failed, failedAttempts, completed, attempts }: HostHour): StripCell {
  if (failed > 0) return "bad";
  if (failedAttempts > 0) return "wait";
  return completed + attempts > 0 ? "good" : "none";
}

function failingHosts(overview: OverviewFigures, viewer: Viewer, now: Date) {
  return (
    <Card id="failing" title="Failing hosts">
      {overview.failing.length === 0 ? <p class="quiet">No failed actions.</p> : null}
      <ul class="plain rows">
        {overview.failing.slice(0, FAILING_HOSTS_DRAWN_MAX).map((one) => (
          <li>
            <div class="between">
              {listLink(listedHost(one.host, viewer), (filters) =>
                rangePath(overview, one.failed === 0 ? filters : { ...filters, status: ["failed"] }),
              )}
              {hostStrip(overview, one.host)}
              {/* Counts ended actions, or for a host without any the retried attempts. */}
              <span>
                <b>{number(one.failed === 0 ? one.failedAttempts : one.failed)}</b>{" "}
                <span class="quiet">
                  {one.failed === 0
                    ? `failed ${one.failedAttempts === 1 ? "attempt" : "attempts"}, retrying`
                    : `of ${counted(one.failed + one.completed, "action")}`}
                </span>
              </span>
            </div>
            <p class="between small quiet reason">
              {untrusted(maskText(one.lastError, viewer))}
              {ago(one.lastFailedAt, now)}
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function waitingAges({ isCut, overAnHour, overADay }: WaitingApprovals) {
  if (overAnHour === 0) return <>All under 1 hour</>;
  const link = (count: number, words: string, age: Age) => (
    <a href={inboxPath({ by: null, host: null, age, after: null })}>
      {`${number(count)}${isCut && count >= COUNTED_MAX ? "+" : ""} ${words}`}
    </a>
  );
  return (
    <>
      {link(overAnHour, "over 1 hour", "hour")}
      {overADay === 0 ? null : <>, {link(overADay, "over 1 day", "day")}</>}
    </>
  );
}

function approvals(overview: OverviewFigures, waiting: WaitingApprovals, user: PageUser) {
  const { approved, rejected, p50Ms, p95Ms } = overview.decisions;
  // The audit log lists decisions, but only for owners.
  const decided = (kind: "approved" | "rejected", count: number) => {
    const words = `${number(count)} ${kind}`;
    if (count === 0 || !mayDo(user.role, "manage")) return words;
    return <a href={SETTINGS_PATHS.audit + queryText({ kind, since: withoutMs(overview.since) })}>{words}</a>;
  };
  return (
    <Card id="decisions" title="Approvals">
      <Facts
        rows={[
          ["Awaiting approval", waiting.count === 0 ? null : waitingAges(waiting)],
          ["Decided", sentence`${decided("approved", approved)}, ${decided("rejected", rejected)}`],
          [
            "Time to decision",
            p50Ms === null || p95Ms === null ? "–" : `${duration(p50Ms)} median, ${duration(p95Ms)} p95`,
          ],
        ]}
      />
    </Card>
  );
}

function scheduledCalls({ count, due, dueSince, isCut, hosts }: ScheduledRetries, viewer: Viewer, now: Date) {
  const least = isCut ? "At least " : "";
  const words = `${least}${counted(count, "call")} scheduled${due === 0 ? "" : `, ${number(due)} due now`}.`;
  const pending = (filters: ListParameters) => listPath({ ...filters, status: ["pending"] });
  return (
    <Card id="scheduled" title="Scheduled calls">
      <p class="quiet">
        {count === 0 && due === 0 ? "No calls are scheduled." : <a href={pending({})}>{words}</a>}
        {dueSince === null ? null : sentence` Oldest due ${ago(dueSince, now)}.`}
      </p>
      <ul class="plain rows">
        {hosts.map((one) => (
          <li class="between">
            {listLink(listedHost(one.host, viewer), pending)}
            <span>
              <b>{number(one.count)}</b> <span class="quiet">next {until(one.nextAt, now)}</span>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function overviewPages(deps: PageDeps) {
  const { overviewService, firstSteps, clock, baseUrl } = deps;
  const hide = deps.answer(async ({ person, form }) => {
    await (form.get("hidden") === "no" ? firstSteps.show(person.caller) : firstSteps.hide(person.caller));
    return OVERVIEW_PATH;
  });
  return personPages(deps, { [FIRST_STEPS_PATH]: OVERVIEW_PATH })
    .get(OVERVIEW_PATH, async ({ context, person }) => {
      const { range = RANGE_DEFAULT, view = "charts" } = readQuery(withoutEmpty(context.search));
      const [answer, steps] = await Promise.all([
        overviewService.read(person.caller, range),
        firstSteps.read(person.caller),
      ]);
      return overviewPage({ ...answer, steps, view, user: person, now: clock.now(), baseUrl });
    })
    .post(FIRST_STEPS_PATH, hide);
}
