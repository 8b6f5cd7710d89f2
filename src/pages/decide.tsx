/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { DecisionFacts, Fact } from "../approvals/facts.ts";
import type { RISKS } from "../approvals/risks.ts";
import type { ActionPolicy } from "../core/action-policy.ts";
import { mayDo } from "../core/roles.ts";
import { normalTarget } from "../core/target.ts";
import { hiddenValuesText } from "../receipts/masked-action.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { actionPath } from "../ui/layout.tsx";
import { sentence, UntrustedText } from "../ui/parts.tsx";
import { UntrustedUrl } from "./request.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import type { PageUser } from "../ui/text.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";

export function SecretsMasked() {
  return <p class="foot">Secrets are masked as ••••. The request is sent with the real values.</p>;
}

export function callText({ method, host }: Pick<SeenAction, "method" | "host">): string {
  return `${method} ${visibleText(host)}`;
}

/** Each in a word or two; the request says it in a sentence. */
export const RISK_WORDS: Readonly<Record<(typeof RISKS)[number], string>> = {
  already_done: "done already",
  key_revoked: "key revoked",
  key_expired: "key expired",
  rejected: "rejected before",
  similar_rejected: "like rejected ones",
  credential: "credential changed",
  new_host: "new host",
  deletes: "deletes",
  other_method: "other method",
  hidden_characters: "hidden characters",
  mixed_scripts: "mixed letters",
  coded_letters: "coded letters",
  hidden_values: "hidden values",
  size: "large",
  callback_host: "other callback host",
};

/** Warnings, below the call and above what is sent. */
export function Risks({ risks }: { readonly risks: readonly DecisionFacts["risks"][number][] }) {
  if (risks.length === 0) return null;
  return (
    <ul class="risks" aria-label="Warnings" data-asked="">
      {risks.map(({ level, text }) => (
        <li class={`risk-${level}`}>
          <UntrustedText text={text} />
        </li>
      ))}
    </ul>
  );
}

/** Facts without untrusted text. */
const TRUSTED_FACTS: ReadonlySet<string> = new Set(["requested_at", "run", "rejections", "attempts", "on_unknown"]);

/** A fact as it is shown: untrusted, unless it is made of our own words and numbers. */
export function factValue({ name, value }: Fact): Child {
  if (TRUSTED_FACTS.has(name)) return value;
  if (name === "method") return <b>{value}</b>;
  if (name === "action") return <a href={value}>{value.slice(value.lastIndexOf("/") + 1)}</a>;
  const target = name === "url" || name === "callback" ? normalTarget(value) : null;
  return target === null ? <UntrustedText text={value} /> : <UntrustedUrl url={value} host={target.host} />;
}

/** Says how many values of a masked action are hidden, and how to see them. Without a session: where to log in. */
export function HiddenValues({ action, user }: { readonly action: MaskedAction; readonly user: PageUser | null }) {
  const text = hiddenValuesText(action.hiddenValues);
  if (text === null) return null;
  if (user !== null) {
    return (
      <div class="hidden-values">
        <span>{text}</span>
        <RevealForm id={action.id} user={user} look="link" name="Reveal" />
      </div>
    );
  }
  return (
    <p class="hidden-values">
      <span>{text}</span>
      <a href={actionPath(action.id)}>Log in to see</a>
    </p>
  );
}

interface DeciderProps {
  readonly policy: ActionPolicy;
  /** Null: whoever has the link of an approval. */
  readonly user: PageUser | null;
}

/** The name of the rule or grant that decided, and why: “Payments above 1000”: A person checks them. For owners, a rule is a link. */
export function Decider({ policy: { by, id, name, reason }, user }: DeciderProps) {
  const text = <UntrustedText text={name ?? ""} />;
  const isLink = by === "rule" && id !== null && user !== null && mayDo(user.role, "manage");
  return (
    <span class="held-by">
      “{isLink ? <a href={`${SETTINGS_PATHS.rules}/${id}`}>{text}</a> : text}”
      {reason === null ? null : sentence`: ${<UntrustedText text={reason} />}`}
    </span>
  );
}

/** Above a request: the rules by which it, or several of those that look alike, are held. Holds of keys stand in the details. */
export function HeldByRules(props: {
  readonly of: readonly Pick<SeenAction, "policy">[];
  readonly user: PageUser | null;
}) {
  const rules = Map.groupBy(
    props.of.flatMap(({ policy }) => (policy?.by === "rule" ? [policy] : [])),
    (policy) => JSON.stringify(policy),
  );
  return [...rules.values()].flatMap(([policy, ...others]) =>
    policy === undefined ? (
      []
    ) : (
      <p>
        {others.length + 1 < props.of.length ? `${others.length + 1} held by the rule ` : "Held by the rule "}
        <Decider policy={policy} user={props.user} />
      </p>
    ),
  );
}

interface RevealFormProps {
  readonly id: string;
  readonly user: PageUser;
  readonly look?: "plain" | "link";
  readonly name?: string;
}

/** A POST form, so that secrets are on a page of their own and nothing that follows links gets them. */
export function RevealForm({ id, user, look = "plain", name = "Show secrets" }: RevealFormProps) {
  return (
    <PostForm user={user} action={`${actionPath(id)}/reveal`}>
      <div class="buttons">
        <Button look={look}>{name}</Button>
      </div>
    </PostForm>
  );
}
