/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Action } from "../actions/action.ts";
import { type DecisionHistory, type DecisionFacts, type Fact, maskedFacts } from "../approvals/facts.ts";
import { normalTarget } from "../outbound/target.ts";
import { UntrustedText } from "./code.tsx";
import { Facts } from "./parts.tsx";
import { Address } from "./request.tsx";
import { hiddenWords, hiddenValues } from "../receipts/masked-action.ts";
import { Button, FormToken } from "./form.tsx";
import { actionPath } from "./layout.tsx";
import type { PageUser } from "./words.ts";

/** Warnings, shown above everything else. */
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
  /** Additional rows. */
  readonly rows?: readonly (readonly [name: string, value: Child])[];
}

/** The facts for approvers, one per row. */
export function DecisionFactList({ facts, rows = [] }: DecisionFactListProps) {
  // `HiddenValues` shows this above the list.
  const visible = facts.filter(({ name }) => name !== "hidden");
  return <Facts rows={[...visible.map((fact) => [fact.label, valueOf(fact)] as const), ...rows]} />;
}

export interface WhatIsAskedProps extends Pick<DecisionFactListProps, "rows"> {
  /** As it is stored. */
  readonly action: Action;
  readonly history: DecisionHistory;
}

/** Risks and facts of one request, at the top of a page with a decision. */
export function WhatIsAsked({ action, history, rows = [] }: WhatIsAskedProps) {
  const { facts, risks } = maskedFacts(action, history, "");
  return (
    <>
      <Risks risks={risks} />
      <section class="card" aria-label="Summary" data-asked="">
        <DecisionFactList facts={facts} rows={rows} />
      </section>
    </>
  );
}

/** Facts without untrusted text. */
const TRUSTED_FACTS: ReadonlySet<string> = new Set(["requested_at", "run", "rejections", "body", "attempts"]);

function valueOf({ name, value }: Fact): Child {
  if (TRUSTED_FACTS.has(name)) return value;
  if (name === "method") return <b>{value}</b>;
  if (name === "action") return <a href={value}>{value.slice(value.lastIndexOf("/") + 1)}</a>;
  const target = name === "url" || name === "callback" ? normalTarget(value) : null;
  return target === null ? <UntrustedText text={value} /> : <Address url={value} host={target.host} />;
}

export interface HiddenValuesProps {
  /** Masked. */
  readonly action: Action;
  /** Left out on pages without a session: they say where to log in. */
  readonly user?: PageUser;
}

/** Says how many values are masked, and how to see them. */
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

/** A POST form, so that secrets are on a page of their own and nothing that follows links gets them. */
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
