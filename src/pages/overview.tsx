/** @jsxImportSource hono/jsx */
import Type, { type Static } from "typebox";
import type { Child } from "hono/jsx";
import { COUNTED_MAX, DAY_MS, FAILING_HOSTS_DRAWN_MAX, HOUR_MS, OVERVIEW_RANGES } from "../core/limits.ts";
import { type OverviewRange, RANGE_NAMES, slotMsOf } from "../core/activity.ts";
import { mayDo, type Viewer, viewerOf } from "../core/roles.ts";
import { OverviewQuery, RANGE_DEFAULT } from "../events/overview-routes.ts";
import type { OverviewAnswer } from "../events/overview.ts";
import type { Breakdown, FailingHost, HostHour, Overview, OverviewSlot } from "../events/overview-figures.ts";
import type { WaitingApprovals } from "../core/store.ts";
import { maskText } from "../receipts/masking.ts";
import type { FirstSteps } from "../accounts/first-steps.ts";
import { FIRST_STEPS_PATH, FirstStepList } from "./first-steps.tsx";
import type { ListQuery } from "../api/list-schemas.ts";
import { Chart, type ChartSlot, Sparkline, Strip, type StripCell } from "./chart.tsx";
import { FilterLinks } from "../ui/controls.tsx";
import { AUDIT_PATH } from "./audit.tsx";
import { type Age, inboxPath } from "./inbox-query.ts";
import { Layout, listPath, OVERVIEW_PATH, queryText, render } from "../ui/layout.tsx";
import { Ago, Card, Facts, Notice, sentence, ListedTime, Table, Time, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { counted, duration, number, type PageUser } from "../ui/text.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { readQuery, withoutEmpty } from "../http/request.ts";
import { seeOther } from "../http/response.ts";
import { answerForm, personPages } from "./forms.ts";
import type { PageDeps } from "./needs.ts";

const VIEWS = ["charts", "table"] as const;

type OverviewView = (typeof VIEWS)[number];

/** The range as the API has it, and whether its slots are drawn or listed. */
export const OverviewPageQuery = Type.Object(
  {
    ...OverviewQuery.properties,
    view: Type.Optional(
      Type.Enum([...VIEWS], { type: "string", description: "Drawn or listed.", examples: ["table"] }),
    ),
  },
  { additionalProperties: false },
);

export type OverviewPageQuery = Static<typeof OverviewPageQuery>;

interface OverviewPageProps extends OverviewAnswer {
  readonly user: PageUser;
  readonly view: OverviewView;
  /** What to do first; null: no more. */
  readonly steps: FirstSteps | null;
  readonly now: Date;
  readonly baseUrl: string;
}

/** What an account did in a range, and what waits. Every number leads to the actions that it counts. */
export function overviewPage(props: OverviewPageProps): string {
  const { user, overview, view, steps, now, baseUrl } = props;
  const list = steps === null ? null : <FirstStepList user={user} steps={steps} baseUrl={baseUrl} />;
  if (steps?.isNew === true) {
    return render(
      <Layout title="Overview" nav="Overview" user={user} width="wide" follows="all" now={now}>
        <h1>Overview</h1>
        {list}
      </Layout>,
    );
  }
  return render(
    <Layout title="Overview" nav="Overview" user={user} width="wide" follows="all" now={now}>
      <div class="head">
        <div>
          <h1>Overview</h1>
        </div>
        <FilterLinks
          label="Range"
          links={RANGE_NAMES.map((range) => ({
            href: overviewPath(range, view),
            name: RANGE_WORDS[range],
            isChosen: range === overview.range,
          }))}
        />
      </div>
      {list}
      <Gaps overview={overview} now={now} />
      <Figures {...props} />
      {view === "table" ? <SlotTable overview={overview} /> : <Charts overview={overview} />}
      <ViewLink range={overview.range} view={view} />
      <HostTable {...props} />
      <div class="pair">
        <div class="stack">
          <FailingHosts {...props} />
          <Scheduled {...props} />
        </div>
        <div class="stack">
          <AgentTable {...props} />
          <Approvals {...props} />
        </div>
      </div>
    </Layout>,
  );
}

const RANGE_WORDS = { "1h": "1 hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days" } as const satisfies Record<
  OverviewRange,
  string
>;

const SLOT_WORDS = {
  "1h": "1 minute",
  "24h": "30 minutes",
  "7d": "3 hours",
  "30d": "12 hours",
} as const satisfies Record<OverviewRange, string>;

function overviewPath(range: OverviewRange, view: OverviewView): string {
  return `${OVERVIEW_PATH}?range=${range}${view === "charts" ? "" : `&view=${view}`}`;
}

function ViewLink({ range, view }: { readonly range: OverviewRange; readonly view: OverviewView }) {
  const other = view === "charts" ? "table" : "charts";
  return (
    <p class="between small quiet">
      <a href={overviewPath(range, other)}>{other === "table" ? "Show as a table" : "Show as charts"}</a>
      <span>
        {`Each ${view === "charts" ? "column" : "row"} is ${SLOT_WORDS[range]}.`}
        <noscript> Times are in UTC.</noscript>
      </span>
    </p>
  );
}

/** Says so where the numbers don't cover the whole range. */
function Gaps({ overview: { since, slots, countedUntil }, now }: Pick<OverviewPageProps, "overview" | "now">) {
  if (countedUntil !== null && countedUntil < now) {
    return (
      <Notice tone="wait">
        Counted up to <Time at={countedUntil} />. Newer actions are being counted; this page updates by itself.
      </Notice>
    );
  }
  if (since.getTime() <= (slots[0]?.at.getTime() ?? 0)) return null;
  return (
    <Notice tone="wait">
      Counted from <Time at={since} />. Older actions are deleted by this server’s retention.
    </Notice>
  );
}

type Count = "created" | "completed" | "failed" | "attempts";

function total(slots: readonly OverviewSlot[], name: Count): number {
  return slots.reduce((sum, slot) => sum + slot[name], 0);
}

/** Rounded down, so that a single failure never shows as 100 %. */
function rate({ completed, failed }: { readonly completed: number; readonly failed: number }): string {
  const all = completed + failed;
  return all === 0 ? "–" : `${Math.floor((completed / all) * 1_000) / 10} %`;
}

/** The list of actions that were created in the range. */
function listOf({ since }: Pick<Overview, "since">, filters: ListQuery = {}): string {
  return listPath({ ...filters, created_after: withoutMs(since) });
}

function withoutMs(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}

function Figures({ overview, waiting, now }: OverviewPageProps) {
  const { slots, latency, decisions } = overview;
  const [created, completed, failed] = [total(slots, "created"), total(slots, "completed"), total(slots, "failed")];
  const attempts = total(slots, "attempts");
  const ended = completed + failed;
  const oldest = waiting.oldestAt === null ? null : sentence`Oldest ${<Ago at={waiting.oldestAt} now={now} />}`;
  const decided = decisions.p50Ms === null ? "No decisions" : `Decided in ${duration(decisions.p50Ms)} (median)`;
  const figures: readonly (readonly [name: string, href: string, value: string, more: Child, course?: number[]])[] = [
    ["Created", listOf(overview), number(created), counted(attempts, "attempt"), slots.map((slot) => slot.created)],
    [
      "Success",
      listOf(overview, { status: ["failed"] }),
      rate({ completed, failed }),
      failed === 0 ? `${number(completed)} completed` : `${number(failed)} of ${number(ended)} failed`,
      successOf(slots),
    ],
    [
      "Latency p95",
      listOf(overview, { status: ["completed", "failed"] }),
      latency === null ? "–" : duration(latency.p95Ms),
      latency === null ? "No attempts" : `Median ${duration(latency.p50Ms)}, p99 ${duration(latency.p99Ms)}`,
      slots.map(({ p95Ms }) => p95Ms ?? 0),
    ],
    // While none waits, how long decisions take.
    ["Awaiting approval", "/approvals", `${number(waiting.count)}${waiting.isCut ? "+" : ""}`, oldest ?? decided],
  ];
  return (
    <ul class="figures">
      {figures.map(([name, href, value, more, course]) => (
        <li>
          <a class="card figure" href={href}>
            <span class="quiet small">{name}</span>
            <b>{value}</b>
            <span class="quiet small">{more}</span>
            {course === undefined ? null : <Sparkline values={course} />}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** How far the success of each slot is above that of the worst. */
function successOf(slots: readonly OverviewSlot[]): number[] {
  const shares = slots.map(({ completed, failed }) =>
    completed + failed === 0 ? 1 : completed / (completed + failed),
  );
  const worst = Math.min(...shares);
  return shares.map((share) => share - worst);
}

/** Labels of the axis of time: how far apart, and whether they are times of the day. */
const LABELS = {
  "1h": { everyMs: HOUR_MS / 6, areTimes: true },
  "24h": { everyMs: 4 * HOUR_MS, areTimes: true },
  "7d": { everyMs: DAY_MS, areTimes: false },
  "30d": { everyMs: 5 * DAY_MS, areTimes: false },
} as const satisfies Record<OverviewRange, object>;

function Charts({ overview }: Pick<OverviewPageProps, "overview">) {
  const { range, slots, latency } = overview;
  const { everyMs, areTimes } = LABELS[range];
  const axis = { labelEveryMs: everyMs, labelsTimes: areTimes };
  const [completed, failed] = [total(slots, "completed"), total(slots, "failed")];
  return (
    <div class="pair">
      <Chart
        id="throughput"
        title="Outcomes"
        kind="bars"
        series={[
          { name: "Completed", look: "good", total: number(completed) },
          { name: "Failed", look: "bad", total: number(failed) },
        ]}
        slots={slots.map((slot) => outcomeSlot(overview, slot))}
        label={number}
        {...axis}
        summary={`Actions that finished in the last ${RANGE_WORDS[range]}: ${number(completed)} completed, ${number(failed)} failed.`}
        empty="No action finished in this range."
      />
      <Chart
        id="latency"
        title="Latency of attempts"
        kind="lines"
        series={[
          { name: "p95", look: "main", total: latency === null ? "–" : duration(latency.p95Ms) },
          { name: "Median", look: "second", total: latency === null ? "–" : duration(latency.p50Ms) },
        ]}
        slots={slots.map(latencySlot)}
        label={duration}
        {...axis}
        summary={
          latency === null
            ? `No attempts in the last ${RANGE_WORDS[range]}.`
            : `Latency of attempts in the last ${RANGE_WORDS[range]}: median ${duration(latency.p50Ms)}, 95 % within ${duration(latency.p95Ms)}.`
        }
        empty="No attempts in this range."
      />
    </div>
  );
}

function outcomeSlot(overview: Overview, { at, created, completed, failed }: OverviewSlot): ChartSlot {
  const values = [completed, failed];
  if (created + completed + failed === 0) return { at, values, href: null, tip: null };
  const tip = `${number(completed)} completed, ${number(failed)} failed, ${number(created)} created`;
  return { at, values, href: slotPath(overview, at), tip };
}

/** The actions that were created in a slot. */
function slotPath({ range }: Overview, at: Date): string {
  const end = new Date(at.getTime() + slotMsOf(OVERVIEW_RANGES[range].slotMinutes));
  return listPath({ created_after: withoutMs(at), created_before: withoutMs(end) });
}

function latencySlot({ at, p50Ms, p95Ms, attempts }: OverviewSlot): ChartSlot {
  const isMeasured = p50Ms !== null && p95Ms !== null;
  const tip = isMeasured ? `p95 ${duration(p95Ms)}, median ${duration(p50Ms)}, ${counted(attempts, "attempt")}` : null;
  return { at, values: [p95Ms, p50Ms], href: null, tip };
}

function SlotTable({ overview }: Pick<OverviewPageProps, "overview">) {
  const busy = overview.slots.filter(({ created, attempts }) => created + attempts > 0).toReversed();
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
            <a href={slotPath(overview, at)}>
              <ListedTime at={at} as={overview.range === "1h" ? "minute" : "short"} />
            </a>,
            ...[created, completed, failed, attempts].map(number),
            ...[p50Ms, p95Ms].map(durationOrNone),
          ])}
        />
      )}
    </Card>
  );
}

function durationOrNone(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}

const SHARE_HEADS = ["Created", "Success", "Failed", "Median", "p95"] as const;

interface SharesProps {
  readonly id: string;
  readonly title: string;
  readonly overview: Overview;
  readonly breakdown: Breakdown;
  /** The filter of a name; null: there is none. */
  readonly filterOf: (name: string) => ListQuery | null;
  readonly nameOf: (name: string) => Child;
  /** Whose shares they are, as in "agents". */
  readonly what: string;
  readonly head: Child;
  /** What is said in place of an empty table. */
  readonly empty: string;
  /** The first cell of a row, by the link of its name; left out: the link alone. */
  readonly beside?: (name: string, link: Child) => Child;
  readonly children?: Child;
}

function Shares(props: SharesProps) {
  const { id, title, overview, breakdown, filterOf, nameOf, what, head, empty, children } = props;
  const { beside = (_name, link) => link } = props;
  const { named, others } = breakdown;
  const linked = (filters: ListQuery | null, text: string, more: ListQuery = {}) =>
    filters === null || text === "0" || text === "–" ? (
      text
    ) : (
      <a href={listOf(overview, { ...filters, ...more })}>{text}</a>
    );
  const rows = named.map(({ name, ...share }) => {
    const filters = filterOf(name);
    return [
      beside(name, filters === null ? nameOf(name) : <a href={listOf(overview, filters)}>{nameOf(name)}</a>),
      linked(filters, number(share.created)),
      rate(share),
      linked(filters, number(share.failed), { status: ["failed"] }),
      ...[share.p50Ms, share.p95Ms].map(durationOrNone),
    ];
  });
  if (others !== null) {
    const { created, failed, p50Ms, p95Ms } = others;
    const name = <span class="quiet">{`All other ${what}`}</span>;
    rows.push([name, number(created), rate(others), number(failed), ...[p50Ms, p95Ms].map(durationOrNone)]);
  }
  return (
    <Card id={id} title={title} look="shares" aside={children}>
      {named.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <Table caption={`The busiest ${what}`} heads={[head, ...SHARE_HEADS]} isWide rows={rows} />
      )}
    </Card>
  );
}

/** A reader sees texts as on the page of an action. What is hidden there stands in no address either. */
function hostFilter(host: string, viewer: Viewer): ListQuery | null {
  return maskText(host, viewer) === host ? { host } : null;
}

interface HostLinkProps {
  readonly host: string;
  readonly viewer: Viewer;
  /** The path of its list, by its filter. */
  readonly pathOf: (filters: ListQuery) => string;
}

function HostLink({ host, viewer, pathOf }: HostLinkProps) {
  const name = <UntrustedText text={maskText(host, viewer)} />;
  const filters = hostFilter(host, viewer);
  return filters === null ? name : <a href={pathOf(filters)}>{name}</a>;
}

function HostTable({ overview, user }: Pick<OverviewPageProps, "overview" | "user">) {
  const viewer = viewerOf(user.role);
  return (
    <Shares
      id="hosts"
      title="By host"
      overview={overview}
      breakdown={overview.hosts}
      filterOf={(host) => hostFilter(host, viewer)}
      nameOf={(host) => <UntrustedText text={maskText(host, viewer)} />}
      what="hosts"
      head={
        <span class="host-cell">
          <span>Host</span>
          <span>Last 24 hours</span>
        </span>
      }
      empty="No calls in this range."
      beside={(host, link) => (
        <span class="host-cell">
          <span>{link}</span>
          <HostStrip overview={overview} host={host} />
        </span>
      )}
    >
      <ul class="legend small">
        <li class="key-good">No failures</li>
        <li class="key-wait">Retried</li>
        <li class="key-bad">Failed</li>
      </ul>
    </Shares>
  );
}

function AgentTable({ overview, keyNames, user }: OverviewPageProps) {
  const nameOf = (id: string) => maskText(keyNames.get(id) ?? id, viewerOf(user.role));
  return (
    <Shares
      id="agents"
      title="By agent"
      overview={overview}
      breakdown={overview.keys}
      filterOf={(id) => (id === "" ? null : { created_by: id })}
      nameOf={(id) => (id === "" ? "Without a key" : <UntrustedText text={nameOf(id)} />)}
      what="agents"
      head="Agent"
      empty="No actions in this range."
    />
  );
}

const LOOK_WORDS = {
  bad: "actions failed in",
  wait: "retried in",
  good: "no failures in",
  none: "no calls in",
} as const satisfies Record<StripCell, string>;

function HostStrip({ overview: { hostHours }, host }: { readonly overview: Overview; readonly host: string }) {
  const cells = (hostHours.get(host) ?? []).map(cellOf);
  if (cells.length === 0) return null;
  const counts = (["bad", "wait", "good", "none"] as const).flatMap((look) => {
    const count = cells.filter((cell) => cell === look).length;
    return count === 0 ? [] : [{ look, count }];
  });
  const words = counts.map(({ look, count }, at) => `${LOOK_WORDS[look]} ${at === 0 ? counted(count, "hour") : count}`);
  return <Strip cells={cells} label={`Last 24 hours: ${words.join(", ")}`} />;
}

function cellOf({ failed, failedAttempts, completed, attempts }: HostHour): StripCell {
  if (failed > 0) return "bad";
  if (failedAttempts > 0) return "wait";
  return completed + attempts > 0 ? "good" : "none";
}

function FailingHosts({ overview, user, now }: OverviewPageProps) {
  const { failing } = overview;
  const viewer = viewerOf(user.role);
  return (
    <Card id="failing" title="Failing hosts">
      {failing.length === 0 ? <p class="quiet">No failed actions.</p> : null}
      <ul class="plain rows">
        {failing.slice(0, FAILING_HOSTS_DRAWN_MAX).map((one) => (
          <li>
            <div class="row-between">
              <HostLink
                host={one.host}
                viewer={viewer}
                pathOf={(filters) => listOf(overview, one.failed === 0 ? filters : { ...filters, status: ["failed"] })}
              />
              <HostStrip overview={overview} host={one.host} />
              <FailedWords {...one} />
            </div>
            <p class="row-between small quiet reason">
              <UntrustedText text={maskText(one.lastError, viewer)} />
              <Ago at={one.lastFailedAt} now={now} />
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Of the actions that ended; of a host that has ended none, the attempts that are retried. */
function FailedWords({ failed, completed, failedAttempts }: FailingHost) {
  const ended = failed + completed;
  const [count, words] =
    failed === 0
      ? [failedAttempts, `failed ${failedAttempts === 1 ? "attempt" : "attempts"}, retrying`]
      : [failed, `of ${counted(ended, "action")}`];
  return (
    <span>
      <b>{number(count)}</b> <span class="quiet">{words}</span>
    </span>
  );
}

/** How much of what awaits approval has waited longer, with a link to it. */
function WaitingAges({ isCut, overAnHour, overADay }: WaitingApprovals) {
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

function Approvals({ overview, waiting, user, now }: OverviewPageProps) {
  const { approved, rejected, p50Ms, p95Ms } = overview.decisions;
  // Decisions are listed in the audit log, which is for owners.
  const decided = (kind: "approved" | "rejected", count: number) => {
    const words = `${number(count)} ${kind}`;
    if (count === 0 || !mayDo(user.role, "manage")) return words;
    return <a href={AUDIT_PATH + queryText({ kind, since: withoutMs(overview.since) })}>{words}</a>;
  };
  return (
    <Card id="decisions" title="Approvals">
      <Facts
        rows={[
          [
            "Awaiting approval",
            <>
              <a href="/approvals">{`${number(waiting.count)}${waiting.isCut ? "+" : ""}`}</a>
              {waiting.oldestAt === null ? null : (
                <span class="quiet">
                  , oldest <Ago at={waiting.oldestAt} now={now} />
                </span>
              )}
            </>,
          ],
          ["Age", waiting.count === 0 ? null : <WaitingAges {...waiting} />],
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

function Scheduled({ retries: { count, due, dueSince, isCut, hosts }, user, now }: OverviewPageProps) {
  const least = isCut ? "At least " : "";
  const words = `${least}${counted(count, "call")} scheduled${due === 0 ? "" : `, ${number(due)} due now`}.`;
  return (
    <Card id="scheduled" title="Scheduled calls">
      <p class="quiet">
        {count === 0 && due === 0 ? "No calls are scheduled." : <a href={listPath({ status: ["pending"] })}>{words}</a>}
        {dueSince === null ? null : sentence` Oldest due ${<Ago at={dueSince} now={now} />}.`}
      </p>
      <ul class="plain rows">
        {hosts.map((one) => (
          <li class="row-between">
            <HostLink
              host={one.host}
              viewer={viewerOf(user.role)}
              pathOf={(filters) => listPath({ ...filters, status: ["pending"] })}
            />
            <span>
              <b>{number(one.count)}</b>{" "}
              <span class="quiet">
                next <UntilTime at={one.nextAt} now={now} />
              </span>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const OVERVIEW_QUERY = compileQuery(OverviewPageQuery);

/** The overview, with the first steps of an account until they are done or hidden. */
export function overviewPages(deps: PageDeps) {
  const { overviewService, firstSteps, formOf, clock, baseUrl } = deps;
  const hide = answerForm(formOf, async ({ person, form }) => {
    await (form.get("hidden") === "no" ? firstSteps.show(person.caller) : firstSteps.hide(person.caller));
    return OVERVIEW_PATH;
  });
  return (
    personPages(deps)
      .get(OVERVIEW_PATH, async ({ context, person }) => {
        const { range = RANGE_DEFAULT, view = "charts" } = readQuery(withoutEmpty(context.search), OVERVIEW_QUERY);
        const [answer, steps] = await Promise.all([
          overviewService.read(person.caller, range),
          firstSteps.read(person.caller),
        ]);
        return overviewPage({ ...answer, steps, view, user: person, now: clock.now(), baseUrl });
      })
      // Where the address of a refused form is loaded again.
      .get(FIRST_STEPS_PATH, () => seeOther("own", OVERVIEW_PATH))
      .post(FIRST_STEPS_PATH, hide)
  );
}
