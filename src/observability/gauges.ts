/** Name and help text of a metric. Label values are given in the order of `labels`. */
interface Definition {
  /** Ends with its unit (`_seconds`, `_bytes`) or, counting events, with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

interface Counter {
  add(labels: readonly string[], count?: number): void;
  text(): string;
}

interface Histogram {
  observe(labels: readonly string[], value: number): void;
  text(): string;
}

/** One number and the values of its labels. */
interface Sample {
  readonly labels: readonly string[];
  readonly value: number;
}

/** A counter from 0. The series in `known` exist from the start, so that a rate sees their first increment. */
export function createCounter(definition: Definition, known: readonly (readonly string[])[] = []): Counter {
  const series = new Map<string, { labels: readonly string[]; value: number }>();
  const seriesOf = (labels: readonly string[]) => {
    const key = labels.join("\0");
    const found = series.get(key) ?? { labels, value: 0 };
    series.set(key, found);
    return found;
  };
  known.forEach(seriesOf);
  return {
    add(labels, count = 1) {
      seriesOf(labels).value += count;
    },
    text: () => head(definition, "counter") + lines(definition, [...series.values()]),
  };
}

/** A histogram by ascending upper bounds, in the unit that the name ends with. */
export function createHistogram(definition: Definition, bounds: readonly number[]): Histogram {
  const series = new Map<string, Distribution>();
  return {
    observe(labels, value) {
      const key = labels.join("\0");
      const found = series.get(key) ?? { labels, counts: Array<number>(bounds.length + 1).fill(0), sum: 0 };
      series.set(key, found);
      const bound = bounds.findIndex((upper) => value <= upper);
      const place = bound === -1 ? bounds.length : bound;
      found.counts[place] = (found.counts[place] ?? 0) + 1;
      found.sum += value;
    },
    text() {
      const all = [...series.values()].map((one) => distributionText(definition, bounds, one));
      return head(definition, "histogram") + all.join("");
    },
  };
}

/** Current values in the Prometheus text format. */
export function gaugeText(definition: Definition, samples: readonly Sample[]): string {
  return head(definition, "gauge") + lines(definition, samples);
}

interface Distribution {
  readonly labels: readonly string[];
  /** One per bound, and one for values above all of them. */
  readonly counts: number[];
  sum: number;
}

function distributionText(
  { name, help, labels }: Definition,
  bounds: readonly number[],
  { labels: values, counts, sum }: Distribution,
): string {
  let below = 0;
  const buckets = counts.map((count, place) => {
    below += count;
    return { labels: [...values, String(bounds[place] ?? "+Inf")], value: below };
  });
  return (
    lines({ name: `${name}_bucket`, help, labels: [...labels, "le"] }, buckets) +
    lines({ name: `${name}_sum`, help, labels }, [{ labels: values, value: sum }]) +
    lines({ name: `${name}_count`, help, labels }, [{ labels: values, value: below }])
  );
}

function head({ name, help }: Definition, type: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function lines(definition: Definition, samples: readonly Sample[]): string {
  return samples.map(({ labels, value }) => `${definition.name}${labelText(definition, labels)} ${value}\n`).join("");
}

function labelText({ labels }: Definition, values: readonly string[]): string {
  if (labels.length === 0) return "";
  return `{${labels.map((label, place) => `${label}="${escape(values[place] ?? "")}"`).join(",")}}`;
}

function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** Values that are read for each scrape, by functions that other modules provide. Absent ones are not shown. */
export interface Readings {
  /** Actions that are not final, by status. */
  readonly waiting?: () => Promise<Readonly<Record<string, number>>>;
  /** Callbacks and mails that are neither delivered nor given up, by kind. */
  readonly notifications?: () => Promise<Readonly<Record<string, number>>>;
  /** Age of the oldest due action in milliseconds; 0: none is due. */
  readonly oldestDueMs?: () => Promise<number>;
  /** Whether the store can't be written. */
  readonly storePaused?: () => boolean;
  /** Whether nothing is claimed, by kind of row. */
  readonly deliveryPaused?: () => Readonly<Record<string, boolean>>;
  /** Event streams that are open now. */
  readonly eventStreams?: () => number;
  /** Versions of the service and its runtime. */
  readonly build?: { readonly version: string; readonly bun: string };
  /** Attempts in flight. */
  readonly inFlight?: () => number;
  /** Results that are known and not written yet. */
  readonly kept?: () => { readonly count: number; readonly bytes: number };
  /** Longest delay of the event loop since the last scrape, in milliseconds. */
  readonly loopLagMaxMs?: () => number;
  /** Resident memory of the process in bytes. */
  readonly residentBytes?: () => number;
}

/** Leaves out the store's numbers when it can't be read: the others are needed most just then. */
export async function readingsText(readings: Readings): Promise<string> {
  const { waiting, notifications, oldestDueMs, inFlight, kept, eventStreams, loopLagMaxMs, residentBytes } = readings;
  const texts: string[] = [stateText(readings)];
  const single = (name: string, help: string, value: number) => {
    texts.push(gaugeText({ name, help, labels: [] }, [{ labels: [], value }]));
  };
  if (waiting) texts.push(await countedText(WAITING, waiting));
  if (notifications) texts.push(await countedText(OUTBOX, notifications));
  if (oldestDueMs) {
    const ms = await oldestDueMs().catch(() => null);
    if (ms !== null) single("outgate_oldest_due_action_age_seconds", OLDEST_DUE, ms / 1_000);
  }
  if (eventStreams) single("outgate_event_streams", "Event streams that are open now.", eventStreams());
  if (inFlight) single("outgate_attempts_in_flight", "Attempts that are on their way now.", inFlight());
  if (kept) {
    const { count, bytes } = kept();
    single("outgate_results_kept", "Results that are known and not written yet.", count);
    single("outgate_results_kept_bytes", "Memory that they hold; nothing is claimed above 64 MB.", bytes);
  }
  if (loopLagMaxMs) {
    const help = "Longest delay of the event loop since the last reading.";
    single("outgate_event_loop_lag_max_seconds", help, loopLagMaxMs() / 1_000);
  }
  if (residentBytes) single("outgate_resident_memory_bytes", "Memory that the process holds.", residentBytes());
  return texts.join("");
}

/** Versions, and what is paused. */
function stateText({ build, storePaused, deliveryPaused }: Readings): string {
  const texts: string[] = [];
  const add = (name: string, help: string, labels: readonly string[], samples: readonly Sample[]) =>
    void texts.push(gaugeText({ name, help, labels }, samples));
  if (build) {
    const { version, bun } = build;
    add("outgate_build_info", "What runs; always 1.", ["version", "bun"], [{ labels: [version, bun], value: 1 }]);
  }
  if (storePaused) {
    const help = "1 while the store can't be written.";
    add("outgate_store_paused", help, [], [{ labels: [], value: Number(storePaused()) }]);
  }
  if (deliveryPaused) {
    const samples = Object.entries(deliveryPaused()).map(([of, isPaused]) => ({
      labels: [of],
      value: Number(isPaused),
    }));
    add("outgate_delivery_paused", "1 while nothing of this kind is claimed.", ["kind"], samples);
  }
  return texts.join("");
}

const OLDEST_DUE = "Seconds since the action that has been due longest was due, paused ones aside; 0: none is due.";

const WAITING = { name: "outgate_actions", help: "Actions that are not final, by status.", labels: ["status"] };

const OUTBOX = {
  name: "outgate_outbox",
  help: "Callbacks and mails that are neither delivered nor given up.",
  labels: ["kind"],
};

async function countedText(definition: Definition, read: () => Promise<Readonly<Record<string, number>>>) {
  try {
    const samples = Object.entries(await read()).map(([label, value]): Sample => ({ labels: [label], value }));
    return gaugeText(definition, samples);
  } catch {
    return "";
  }
}
