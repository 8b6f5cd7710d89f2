/** @jsxImportSource hono/jsx */
import type { TimelineEvent, TimelineEntry } from "../domain/timeline.ts";
import { wordsOf } from "./happening.tsx";
import { Time } from "./parts.tsx";

/** Everything that happened, oldest first. The entries are masked by now. */
export function History({ timeline }: { readonly timeline: readonly TimelineEntry[] }) {
  const told = timeline.filter((entry, at) => isTold(entry, timeline[at + 1]));
  return (
    <section class="card" aria-labelledby="history">
      <h2 id="history">History</h2>
      <ol class="steps">
        {told.map(({ at, run, event }, index) => (
          <>
            {run > (told[index - 1]?.run ?? 1) ? <li class="run">{`Run ${run}`}</li> : null}
            <Step at={at} before={told[index - 1]?.at} event={event} />
          </>
        ))}
      </ol>
    </section>
  );
}

/** The beginning of an attempt is told by its end, unless that has not come. */
function isTold({ event }: TimelineEntry, next: TimelineEntry | undefined): boolean {
  return event.type !== "started" || next === undefined;
}

interface StepProps {
  readonly at: Date;
  /** When the step before it was. */
  readonly before: Date | undefined;
  readonly event: TimelineEvent;
}

function Step({ at, before, event }: StepProps) {
  const { tone, title, details } = wordsOf(event, at);
  return (
    <li class={`step step-${tone}`}>
      <p class="step-head">
        <span>{title}</span>
        <span class="quiet small">
          <Time at={at} near={before} />
        </span>
      </p>
      {details.map((detail) => (
        <p class="small quiet">{detail}</p>
      ))}
    </li>
  );
}
