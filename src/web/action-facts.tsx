/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Action } from "../domain/action.ts";
import { Who } from "./happening.tsx";
import { Facts, Time } from "./parts.tsx";
import { duration } from "./words.ts";

export interface ActionFactsProps {
  readonly action: Action;
  /** Further rows below its own. */
  readonly rows?: readonly (readonly [name: string, value: Child])[];
}

/** What is to be known of an action at a glance. */
export function ActionFacts({ action, rows = [] }: ActionFactsProps) {
  const { approve, approvedBy, approvedAt, startedAt, finishedAt, result, attempts, retries } = action;
  const ms = result?.durationMs ?? null;
  const at = (time: Date | null) => (time === null ? null : <Time at={time} />);
  return (
    <section class="card" aria-label="Facts">
      <Facts
        rows={[
          ["Action", <span class="theirs">{action.id}</span>],
          ["Requested", <Time at={action.createdAt} />],
          ["Approval", approve ? null : "Not needed"],
          ["Approved by", approvedBy === null ? null : <Who actor={approvedBy} />],
          ["Approved at", at(approvedAt)],
          ["First attempt", at(startedAt)],
          ["Ended", at(finishedAt)],
          ["Run", action.run === 1 ? null : String(action.run)],
          ["Attempts", `${attempts} of ${retries}`],
          ["Last attempt took", ms === null ? null : duration(ms)],
          ...rows,
        ]}
      />
    </section>
  );
}
