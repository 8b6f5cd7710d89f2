/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { factsOf } from "../approvals/facts-schema.ts";
import type { Action } from "../actions/action.ts";
import type { DecisionHistory, DecisionFacts, Fact } from "../approvals/facts.ts";
import { normalTarget } from "../outbound/normal-target.ts";
import { UntrustedText } from "./code.tsx";
import { Facts } from "./parts.tsx";
import { Address } from "./request.tsx";
import { hiddenWords, hiddenValues } from "../receipts/masked-action.ts";
import { Button, FormToken } from "./form.tsx";
import { actionPath } from "./layout.tsx";
import type { PageUser } from "./words.ts";

/** Why somebody should look twice, above everything else. */
export function Risks({ risks }: Pick<DecisionFacts, "risks">) {
  if (risks.length === 0) return null;
  return (
    <ul class="risks" aria-label="Warnings" data-asked="">
      {risks.map(({ text }) => (
        <li>
          <UntrustedText text={text} />
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
  // How much is hidden stands above it, with the way to see it (`HiddenValues`).
  const told = facts.filter(({ name }) => name !== "hidden");
  return <Facts rows={[...told.map((fact) => [fact.label, valueOf(fact)] as const), ...rows]} />;
}

export interface WhatIsAskedProps extends Pick<DecisionFactListProps, "rows"> {
  /** As it is stored. */
  readonly action: Action;
  readonly history: DecisionHistory;
}

/** The head of a page on which somebody decides: risks and facts of its one request. */
export function WhatIsAsked({ action, history, rows = [] }: WhatIsAskedProps) {
  const { facts, risks } = factsOf(action, history, "");
  return (
    <>
      <Risks risks={risks} />
      <section class="card" aria-label="Summary" data-asked="">
        <DecisionFactList facts={facts} rows={rows} />
      </section>
    </>
  );
}

/** Facts whose words are all ours: they need no frame around what others wrote. */
const OURS: ReadonlySet<string> = new Set(["requested_at", "run", "rejections", "body", "attempts"]);

function valueOf({ name, value }: Fact): Child {
  if (OURS.has(name)) return value;
  if (name === "method") return <b>{value}</b>;
  if (name === "action") return <a href={value}>{value.slice(value.lastIndexOf("/") + 1)}</a>;
  const target = name === "url" || name === "callback" ? normalTarget(value) : null;
  return target === null ? <UntrustedText text={value} /> : <Address url={value} host={target.host} />;
}

export interface HiddenValuesProps {
  /** As it is shown: masked. */
  readonly action: Action;
  /** Who may have them shown; without a session it is said where. */
  readonly user?: PageUser;
}

/** How much of a request is hidden from whoever decides on it, and how to see it. Nothing where nothing is. */
export function HiddenValues({ action, user }: HiddenValuesProps) {
  const words = hiddenWords(hiddenValues(action));
  if (words === null) return null;
  return (
    <div class="notice notice-wait hidden-values">
      <p>
        <b>{words}.</b> {user === undefined ? <SignInToSee id={action.id} /> : null}
      </p>
      {user === undefined ? null : <RevealForm id={action.id} user={user} />}
    </div>
  );
}

function SignInToSee({ id }: { readonly id: string }) {
  return (
    <>
      To see the hidden values, log in and open <a href={actionPath(id)}>this action</a>.
    </>
  );
}

/** Leads to a page of its own by a form: what is secret never stands in this one, and nothing that follows links gets it. */
export function RevealForm({ id, user }: { readonly id: string; readonly user: PageUser }) {
  return (
    <form method="post" action={`${actionPath(id)}/reveal`}>
      <FormToken user={user} />
      <div class="buttons">
        <Button look="plain">Show secrets</Button>
      </div>
    </form>
  );
}
