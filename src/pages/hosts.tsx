/** @jsxImportSource hono/jsx */
import type { Backoff } from "../actions/backoff.ts";
import type { StatusPattern } from "../actions/rules.ts";
import { ALL_HOSTS, type HostRules, type HostSettingsRow } from "../hosts/settings.ts";
import { Button, Field, type FieldProps, OrCancel, PostForm } from "./form.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { Card, Facts, type FactRows, FieldRow, LinkButton, PageHead, Problem, Time, UntrustedText } from "./parts.tsx";
import { duration, type PageUser } from "./text.ts";
import { ActorName } from "./timeline.tsx";

export const HOSTS_PATH = "/settings/hosts";

/** The fields of the form, by name. */
export type HostFields = Readonly<Record<(typeof HOST_FIELDS)[number], string>>;

export const HOST_FIELDS = [
  "timeout_ms",
  "base_ms",
  "cap_ms",
  "give_up_on",
  "max_per_second",
  "max_concurrent",
] as const;

export interface HostsPageProps {
  readonly user: PageUser;
  readonly hosts: readonly HostSettingsRow[];
  readonly defaults: HostRules;
  /** The refused host, and what is wrong with it. */
  readonly typed?: string;
  readonly problem?: string;
}

/** What the account sets for hosts. */
export function hostsPage({ user, hosts, defaults, typed = "", problem }: HostsPageProps): string {
  return render(
    <Layout title="Hosts" nav="Settings" user={user}>
      <PageHead title="Hosts" back={SETTINGS_LINK}>
        <p>
          How calls to a host are made and repeated. What an action says itself comes first, then its host, then the
          account, then the server.
        </p>
      </PageHead>
      <ul class="card rows">
        <FieldRow aside={<LinkButton href={`${HOSTS_PATH}/defaults`}>Change</LinkButton>}>
          <p>
            <b>All hosts</b>
          </p>
          <Facts rows={rowsOf(defaults)} />
        </FieldRow>
        {hosts.map((row) => (
          <HostRow {...row} user={user} />
        ))}
      </ul>
      <Card id="add" title="Set up a host">
        <form method="get" action={`${HOSTS_PATH}/edit`} class="ask">
          <Field
            name="host"
            label="Host"
            value={typed}
            hint={HOST_HINT}
            required
            autocomplete="off"
            problem={problem ?? null}
          />
          <Button>Continue</Button>
        </form>
      </Card>
    </Layout>,
  );
}

const HOST_HINT = "For example api.example.com or 10.0.0.7:8080.";

function HostRow({ user, host, rules, updatedAt, updatedBy }: HostSettingsRow & { readonly user: PageUser }) {
  const ofHost = <span class="visually-hidden"> {host}</span>;
  const buttons = (
    <div class="buttons">
      <LinkButton href={`${HOSTS_PATH}/edit?host=${encodeURIComponent(host)}`}>Change{ofHost}</LinkButton>
      <PostForm user={user} action={`${HOSTS_PATH}/remove`} fields={[["host", host]]}>
        <Button look="bad">Remove{ofHost}</Button>
      </PostForm>
    </div>
  );
  return (
    <FieldRow aside={buttons}>
      <p>
        <b class="untrusted">
          <UntrustedText text={host} />
        </b>
      </p>
      <Facts rows={[...rowsOf(rules), ["Set", <Time at={updatedAt} />], ["By", <ActorName actor={updatedBy} />]]} />
    </FieldRow>
  );
}

/** What is set, in words. */
function rowsOf({ timeoutMs, backoff, giveUpOn, maxPerSecond, maxConcurrent }: HostRules): FactRows {
  const rows: FactRows = [
    ["Timeout", timeoutMs === null ? null : `${duration(timeoutMs)} for an attempt`],
    ["Delay", backoffText(backoff)],
    ["Give up on", giveUpOn === null ? null : patternsText(giveUpOn)],
    ["Rate", maxPerSecond === null ? null : `${maxPerSecond} calls a second at most`],
    ["At a time", maxConcurrent === null ? null : `${maxConcurrent} calls at most`],
  ];
  return rows.some(([, value]) => value !== null) ? rows : [["Set", "Nothing."]];
}

/** Null: it is not set. */
export function backoffText(backoff: Backoff | null | undefined): string | null {
  if (backoff === null || backoff === undefined) return null;
  return `${duration(backoff.baseMs)}, doubled up to ${duration(backoff.capMs)}`;
}

export function patternsText(patterns: readonly StatusPattern[]): string {
  return patterns.length === 0 ? "nothing" : patterns.join(", ");
}

interface HostFormProps {
  readonly user: PageUser;
  /** Empty: all hosts. */
  readonly host: string;
  readonly typed: HostFields;
  readonly problem?: string | undefined;
}

/** The form that sets everything of a host, or of all. */
export function hostFormPage({ user, host, typed, problem }: HostFormProps): string {
  const isDefaults = host === ALL_HOSTS;
  const field = (name: keyof HostFields, label: string, hint: string, more: Partial<FieldProps> = {}) => (
    <Field name={name} label={label} hint={hint} value={typed[name]} autocomplete="off" {...more} />
  );
  return render(
    <Layout title={isDefaults ? "All hosts" : "Host"} nav="Settings" user={user}>
      <PageHead
        title={isDefaults ? "All hosts" : <UntrustedText text={host} />}
        back={{ href: HOSTS_PATH, name: "Hosts" }}
        intro="An empty field sets nothing."
      />
      <Problem text={problem} />
      <PostForm user={user} action={HOSTS_PATH} class="card" fields={[["host", host]]}>
        {field("timeout_ms", "Timeout", "Milliseconds for a whole attempt, 1000 to 120000.")}
        {field(
          "base_ms",
          "First delay",
          "Milliseconds after the first failed attempt, doubled after each further one.",
        )}
        {field("cap_ms", "Longest delay", "Milliseconds between two attempts. Both delays, or neither.")}
        {field("give_up_on", "Give up on", "Statuses after which no attempt follows: 401, 422, 5xx.")}
        {isDefaults ? null : field("max_per_second", "Calls a second", "0.01 to 10000.")}
        {isDefaults ? null : field("max_concurrent", "Calls at a time", "At most the limit of the server.")}
        <OrCancel href={HOSTS_PATH}>
          <Button>Save</Button>
        </OrCancel>
      </PostForm>
    </Layout>,
  );
}

/** What is set, as the form has it. */
export function hostFieldsOf({ timeoutMs, backoff, giveUpOn, maxPerSecond, maxConcurrent }: HostRules): HostFields {
  const text = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));
  return {
    timeout_ms: text(timeoutMs),
    base_ms: text(backoff?.baseMs),
    cap_ms: text(backoff?.capMs),
    give_up_on: giveUpOn?.join(", ") ?? "",
    max_per_second: text(maxPerSecond),
    max_concurrent: text(maxConcurrent),
  };
}
