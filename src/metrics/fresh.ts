/**
 * Reads once for all who ask within so many milliseconds, and for all who ask while it reads. A failure is theirs too, so
 * that a source that fails slowly is not asked the more often for it.
 */
export function freshFor<Value>(
  freshMs: number,
  monotonicMs: () => number,
  read: () => Promise<Value>,
): () => Promise<Value> {
  let last: { readonly value: Promise<Value>; endedMs: number } | null = null;
  return () => {
    if (last !== null && monotonicMs() - last.endedMs < freshMs) return last.value;
    const reading = { value: read(), endedMs: Number.POSITIVE_INFINITY };
    const ended = () => void (reading.endedMs = monotonicMs());
    reading.value.then(ended, ended);
    last = reading;
    return reading.value;
  };
}
