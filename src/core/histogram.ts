/**
 * Durations in buckets, for percentiles over many hours without each single duration. As in HdrHistogram, a bucket is at most
 * 1/16 as wide as its durations: exact below 32 ms, within 3 % above.
 */
export type Histogram = ReadonlyMap<number, number>;

/** Buckets per power of two. */
const BUCKETS = 16;

const BUCKET_BITS = 4;

/** The longest duration that has a bucket of its own: a month. */
const DURATION_MS_MAX = 2 ** 32 - 1;

function bucketFor(ms: number): number {
  const whole = Math.min(DURATION_MS_MAX, Math.max(0, Math.round(ms)));
  if (whole < BUCKETS) return whole;
  const shift = 31 - BUCKET_BITS - Math.clz32(whole);
  return BUCKETS * (shift + 1) + (whole >>> shift) - BUCKETS;
}

/** The middle of a bucket, rounded down. */
function bucketMiddle(bucket: number): number {
  if (bucket < BUCKETS) return bucket;
  const shift = Math.floor(bucket / BUCKETS) - 1;
  const first = (BUCKETS + (bucket % BUCKETS)) * 2 ** shift;
  return first + Math.floor((2 ** shift - 1) / 2);
}

/** Adds `count` durations of this length. */
export function addDuration(histogram: Map<number, number>, ms: number, count: number): void {
  const bucket = bucketFor(ms);
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + count);
}

/** All durations of several histograms. */
export function mergeHistograms(histograms: readonly Histogram[]): Histogram {
  const merged = new Map<number, number>();
  for (const histogram of histograms) {
    for (const [bucket, count] of histogram) merged.set(bucket, (merged.get(bucket) ?? 0) + count);
  }
  return merged;
}

/** The durations of a histogram that are not in the others, which it contains. */
export function withoutHistograms(histogram: Histogram, others: readonly Histogram[]): Histogram {
  const left = new Map(histogram);
  for (const [bucket, count] of mergeHistograms(others)) {
    const rest = (left.get(bucket) ?? 0) - count;
    if (rest > 0) left.set(bucket, rest);
    else left.delete(bucket);
  }
  return left;
}

/** The percentiles for these shares, in milliseconds; empty: there are no durations. */
export function findPercentiles(histogram: Histogram, shares: readonly number[]): readonly number[] {
  const ordered = [...histogram].toSorted(([one], [other]) => one - other);
  const all = ordered.reduce((sum, [, count]) => sum + count, 0);
  if (all === 0) return [];
  return shares.map((share) => {
    let seen = 0;
    const found = ordered.find(([, count]) => (seen += count) >= all * share);
    return bucketMiddle(found?.[0] ?? 0);
  });
}

/** As it is stored: pairs of a bucket and its count. */
export function histogramText(histogram: Histogram): string {
  return [...histogram].map(([bucket, count]) => `${bucket}:${count}`).join(" ");
}

export function parseHistogram(text: string): Map<number, number> {
  const histogram = new Map<number, number>();
  scanPairs(text, (bucket, count) => histogram.set(bucket, count));
  return histogram;
}

/**
 * All durations of several histograms as they are stored. A month of a busy host has thousands of pairs: a map for each
 * text costs ten times as much as all the reading.
 */
export function mergeHistogramTexts(texts: Iterable<string>): Histogram {
  const counts = new Float64Array(bucketFor(DURATION_MS_MAX) + 1);
  for (const text of texts) {
    scanPairs(text, (bucket, count) => (counts[bucket] = (counts[bucket] ?? 0) + count));
  }
  const merged = new Map<number, number>();
  for (const [bucket, count] of counts.entries()) if (count > 0) merged.set(bucket, count);
  return merged;
}

const [SPACE, COLON, ZERO] = [32, 58, 48] as const;

/** Goes through the pairs of a text, from end to end once. */
function scanPairs(text: string, found: (bucket: number, count: number) => void): void {
  let bucket = 0;
  let number = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COLON) {
      bucket = number;
      number = 0;
    } else if (code === SPACE) {
      found(bucket, number);
      number = 0;
    } else number = 10 * number + code - ZERO;
  }
  if (text !== "") found(bucket, number);
}
