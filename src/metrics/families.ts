/** What a family of numbers is called and what it counts; values of labels are given in the order of `labels`. */
export interface Definition {
  /** Ends with its unit (`_seconds`, `_bytes`) or, counting events, with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export interface Counter {
  add(labels: readonly string[], count?: number): void;
  text(): string;
}

export interface Histogram {
  observe(labels: readonly string[], value: number): void;
  text(): string;
}

/** One number and the values of its labels. */
export interface Sample {
  readonly labels: readonly string[];
  readonly value: number;
}

/** Counts up from 0. The series in `known` are there from the start, so that a rate sees their first count. */
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

/** Counts values by upper bounds, which ascend and are in the unit that the name ends with. */
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

/** Numbers as they are now, in the Prometheus text format. */
export function gaugeText(definition: Definition, samples: readonly Sample[]): string {
  return head(definition, "gauge") + lines(definition, samples);
}

interface Distribution {
  readonly labels: readonly string[];
  /** One for each bound, and one for what is above them all. */
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
