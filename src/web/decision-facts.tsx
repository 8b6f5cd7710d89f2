/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { DecisionFacts, Fact } from "../domain/decision-facts.ts";
import { normalTarget } from "../domain/normal-target.ts";
import { Foreign } from "./foreign.tsx";
import { Facts } from "./parts.tsx";
import { Address } from "./request.tsx";

/** Why somebody should look twice, above everything else. */
export function Risks({ risks }: Pick<DecisionFacts, "risks">) {
  if (risks.length === 0) return null;
  return (
    <ul class="risks" aria-label="Look twice">
      {risks.map(({ text }) => (
        <li>
          <Foreign text={text} />
        </li>
      ))}
    </ul>
  );
}

export interface DecisionFactListProps extends Pick<DecisionFacts, "facts"> {
  /** Further rows below, of this place alone. */
  readonly rows?: readonly (readonly [name: string, value: Child])[];
}

/** What is told to whoever decides, a row each. */
export function DecisionFactList({ facts, rows = [] }: DecisionFactListProps) {
  return <Facts rows={[...facts.map((fact) => [fact.label, valueOf(fact)] as const), ...rows]} />;
}

function valueOf({ name, value }: Fact): Child {
  if (name === "method") return <b>{value}</b>;
  if (name === "action") return <a href={value}>{value.slice(value.lastIndexOf("/") + 1)}</a>;
  const target = name === "url" || name === "callback" ? normalTarget(value) : null;
  return target === null ? <Foreign text={value} /> : <Address url={value} host={target.host} />;
}
