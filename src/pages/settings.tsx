/** @jsxImportSource hono/jsx */
import type { ListedHost } from "../accounts/callback-hosts.ts";
import { UntrustedText } from "./code.tsx";
import { Layout, render } from "./layout.tsx";
import { Notifications, type NotificationsProps } from "./notifications.tsx";
import { OriginForm } from "./signing.tsx";
import { type PageUser, counted, duration } from "./words.ts";
import type { Child } from "hono/jsx";
import {
  DEDUPE_WINDOW_MS,
  NOTIFY_DELAYS_MS,
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
  CALLBACK_HOSTS_MAX,
} from "../config/limits.ts";
import { Facts, Day, Chip } from "./parts.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import type { ShownAccount } from "../accounts/schemas.ts";
import { type SignUpsClosedBy, signUpsClosedWords } from "../accounts/sign-up-gate.ts";

export interface SettingsPageProps {
  readonly user: PageUser;
  readonly rules: Rules;
  /** The newest ones. */
  readonly notifications: NotificationsProps;
  readonly callbackHosts: readonly ListedHost[];
  /** The visitor looks after the accounts of the service. */
  readonly isOperator: boolean;
}

/** What an account's people can set, what they can look after, and what is in force. */
export function settingsPage({ user, rules, notifications, callbackHosts, isOperator }: SettingsPageProps): string {
  return render(
    <Layout title="Settings" place="Settings" user={user}>
      <h1>Settings</h1>
      <section class="card" aria-labelledby="signing">
        <h2 id="signing">Signing secrets</h2>
        <p class="quiet">
          Every call and every callback is signed. Each origin has a secret of its own, so that one target can’t forge
          calls to another, and another one for callbacks, so that none passes for a call.{" "}
          <a href="/docs/verify">How a target verifies them</a>.
        </p>
        <OriginForm user={user} />
        <p class="quiet small">
          Did something leak? <a href="/settings/rotation">Give all origins new secrets</a>.
        </p>
      </section>
      <section class="card" aria-labelledby="callback-hosts">
        <h2 id="callback-hosts">Callback hosts</h2>
        <CallbackHosts user={user} hosts={callbackHosts} />
      </section>
      <section class="told" aria-labelledby="told">
        <h2 id="told">Callbacks and mails</h2>
        <Notifications {...notifications} />
      </section>
      <section class="card" aria-labelledby="watch">
        <h2 id="watch">Pauses and audit log</h2>
        <p class="quiet">
          <a href="/settings/pauses">Pause the account or a key</a>: nothing of it is sent until you resume.{" "}
          <a href="/audit">Audit log</a>: who did what to this account.
        </p>
      </section>
      {isOperator ? (
        <section class="card" aria-labelledby="accounts">
          <h2 id="accounts">Accounts</h2>
          <p class="quiet">
            <a href={ACCOUNTS_PAGE_PATH}>The accounts of this service</a>: whether anybody may sign up, and who did.
          </p>
        </section>
      ) : null}
      <section class="card" aria-labelledby="log-in">
        <h2 id="log-in">Your log-in</h2>
        <p class="quiet">
          You are <UntrustedText text={user.email} />. <a href="/settings/password">Change your password</a>.
        </p>
      </section>
      <RulesView rules={rules} />
    </Layout>,
  );
}

/** What is in force on this server, as far as it may be told to whoever looks. */
export interface Rules {
  /** A sentence: where calls may go. */
  readonly targets: string;
  /** 0: any number. */
  readonly rateLimitPerSecond: number;
  readonly attemptTimeoutMs: number;
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** null: an approval is awaited for ever. */
  readonly approvalTtlHours: number | null;
  readonly approvalLinks: "confirm" | "one_click";
  /** Addresses and domains, or how many there are for whom they are not; empty: anyone. */
  readonly approvers: readonly string[];
  readonly agentApproval: "elicit" | "off";
  readonly sendsMail: boolean;
  /** null: finished actions are kept. */
  readonly retentionDays: number | null;
}

/** The settings of the server in words, each with its name. */
export function RulesView({ rules }: { readonly rules: Rules }) {
  return (
    <>
      <Section id="targets" title="Where calls may go" rows={targetRows(rules)} />
      <Section id="delivery" title="Delivery and limits" rows={deliveryRows(rules)} />
      <Section id="approvals" title="Approvals" rows={approvalRows(rules)} />
      <Section id="retention" title="Retention" rows={retentionRows(rules)} />
      <p class="foot">Whoever runs this server changes these by its settings, and starts it again.</p>
    </>
  );
}

type Rows = readonly (readonly [name: string, value: Child])[];

function Section({ id, title, rows }: { readonly id: string; readonly title: string; readonly rows: Rows }) {
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <Facts rows={rows} />
    </section>
  );
}

/** A value in words, and the setting that it comes from. */
function Said({ words, by }: { readonly words: string; readonly by: string }) {
  return (
    <>
      {words} <code class="setting">{by}</code>
    </>
  );
}

function targetRows({ targets }: Rules): Rows {
  return [
    ["Allowed", <Said words={targets} by="ALLOWED_PRIVATE_TARGETS" />],
    ["Never", "Cloud metadata, link-local and multicast addresses, whatever the settings say."],
    ["Checked", "Every address that a name stands for, at every attempt; the call goes to a checked one."],
  ];
}

function deliveryRows(rules: Rules): Rows {
  const { rateLimitPerSecond, attemptTimeoutMs, retryBaseMs, retryCapMs } = rules;
  const rate = rateLimitPerSecond === 0 ? "Not limited." : `${counted(rateLimitPerSecond, "request")} a second.`;
  const wait = `${duration(retryBaseMs)} after the first failure, twice as long after each further one, ${duration(retryCapMs)} at most.`;
  const callbacks = NOTIFY_DELAYS_MS.map(duration).join(", ");
  return [
    ["Rate of the account", <Said words={rate} by="RATE_LIMIT_PER_SECOND" />],
    ["An attempt takes", <Said words={`${duration(attemptTimeoutMs)} at most.`} by="ATTEMPT_TIMEOUT_MS" />],
    ["Retries wait", <Said words={wait} by="RETRY_BASE_MS, RETRY_CAP_MS" />],
    ["Attempts of a run", `${RETRIES_DEFAULT}, unless the create says another number, up to ${RETRIES_MAX}.`],
    ["Callbacks are tried", `At once, and after failures ${callbacks} later; then they are given up.`],
    [
      "A request body has",
      `${kib(REQUEST_BODY_BYTES_MAX)} at most; of an answer ${kib(RESPONSE_BODY_BYTES_MAX)} are kept.`,
    ],
    ["Keys of deduplication", `Are remembered for ${duration(DEDUPE_WINDOW_MS)}.`],
  ];
}

function approvalRows(rules: Rules): Rows {
  const { approvalTtlHours, approvalLinks, approvers, agentApproval, sendsMail } = rules;
  const expire = approvalTtlHours === null ? "Never." : `After ${counted(approvalTtlHours, "hour")}: cancelled.`;
  const link = approvalLinks === "confirm" ? "It asks first." : "It decides when it is opened.";
  const agents =
    agentApproval === "elicit" ? "Its client may put the question to its person, but for what a key holds." : "Never.";
  return [
    ["Approvals expire", <Said words={expire} by="APPROVAL_TTL_HOURS" />],
    ["Mails", <Said words={sendsMail ? "Are sent." : "Are not sent: no provider is set."} by="MAILGUN_API_KEY" />],
    ["A link in a mail", <Said words={link} by="APPROVAL_LINKS" />],
    ["Who may be asked", <Said words={askedWords(approvers)} by="APPROVERS" />],
    ["An agent approves", <Said words={agents} by="AGENT_APPROVAL" />],
  ];
}

function askedWords(approvers: readonly string[]): string {
  if (approvers.length > 0) return `People of the account, and ${approvers.join(", ")}`;
  return "People of the account; by an owner key without a hold anyone.";
}

function retentionRows({ retentionDays }: Rules): Rows {
  const kept = retentionDays === null ? "For ever." : `For ${counted(retentionDays, "day")} after their end.`;
  return [["Finished actions are kept", <Said words={kept} by="RETENTION_DAYS" />]];
}

function kib(bytes: number): string {
  return bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;
}

export interface CallbackHostsProps {
  readonly user: PageUser;
  readonly hosts: readonly ListedHost[];
  /** What was typed, where it could not be listed, and why. */
  readonly typed?: string;
  readonly problem?: string | null;
}

/** Where callbacks of keys with a hold may go, with a form for each change. */
export function CallbackHosts({ user, hosts, typed = "", problem = null }: CallbackHostsProps) {
  return (
    <>
      <p class="quiet">
        What a key with a hold creates waits for a person, but its callbacks leave before that. They go only to these
        hosts. Keys without a hold may name any.
      </p>
      {hosts.length === 0 ? (
        <p>No host is listed: no callback of a key with a hold is sent.</p>
      ) : (
        <ul class="rows" aria-label="Listed hosts">
          {hosts.map(({ host, createdAt }) => (
            <li class="row-split">
              <p>
                <b class="theirs">
                  <UntrustedText text={host} />
                </b>{" "}
                <span class="quiet small">
                  since <Day at={createdAt} />
                </span>
              </p>
              <form method="post" action="/settings/callback-hosts/remove">
                <FormToken user={user} />
                <input type="hidden" name="host" value={host} />
                <Button look="bad">
                  Remove<span class="visually-hidden"> {host}</span>
                </Button>
              </form>
            </li>
          ))}
        </ul>
      )}
      {hosts.length >= CALLBACK_HOSTS_MAX && problem === null ? null : (
        <form method="post" action="/settings/callback-hosts" class="ask">
          <FormToken user={user} />
          <Field
            name="host"
            label="Host"
            value={typed}
            hint="Like hooks.example.com or 10.0.0.7:8080. Without a port: 443 for https, 80 for http."
            isRequired
            autocomplete="off"
            problem={problem}
          />
          <Button>List it</Button>
        </form>
      )}
    </>
  );
}

/** The same on a page of its own, where what was typed could not be listed. */
export function callbackHostsPage(props: CallbackHostsProps): string {
  return render(
    <Layout title="Callback hosts" place="Settings" user={props.user}>
      <div class="head">
        <p class="small">
          <a href="/settings">Settings</a>
        </p>
        <h1>Callback hosts</h1>
      </div>
      <section class="card" aria-label="Hosts">
        <CallbackHosts {...props} />
      </section>
    </Layout>,
  );
}

export const ACCOUNTS_PAGE_PATH = "/settings/accounts";

export interface AccountsPageProps {
  readonly user: PageUser;
  /** Those that are stopped first. */
  readonly accounts: readonly ShownAccount[];
  /** Why nobody may sign up; null: anybody may. */
  readonly closedBy: SignUpsClosedBy | null;
}

/** The accounts of the service, and which of them are stopped. */
export function accountsPage({ user, accounts, closedBy }: AccountsPageProps): string {
  return render(
    <Layout title="Accounts" place="Settings" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/settings">Settings</a>
        </p>
        <h1>Accounts</h1>
        <p>
          {closedBy === null
            ? "Sign-ups are open: whoever reaches this service makes an account of their own, with an owner key."
            : signUpsClosedWords(closedBy)}
        </p>
        <p class="quiet">
          An account that was signed up before sign-ups closed is stopped: its keys are refused, and nothing of it is
          sent until you allow it. Allow only accounts of people whom you know.
        </p>
      </div>
      <ul class="card rows">
        {accounts.map((account) => (
          <Row of={account} user={user} />
        ))}
      </ul>
    </Layout>,
  );
}

function Row({ of: account, user }: { readonly of: ShownAccount; readonly user: PageUser }) {
  const { id, email, createdAt, isFirst, isStopped, allowedAt } = account;
  return (
    <li class="row-split">
      <div class="stack">
        <p class="chips">
          <b class="name">{email === null ? "Nobody yet" : <UntrustedText text={email} />}</b>{" "}
          {isFirst ? <Chip tone="still">First account</Chip> : null}
          {isStopped ? <Chip tone="bad">Stopped</Chip> : null}
        </p>
        <p class="quiet small">
          <code>{id}</code>. Made <Day at={createdAt} />.
          {allowedAt === null ? null : (
            <>
              {" "}
              Allowed <Day at={allowedAt} />.
            </>
          )}
        </p>
      </div>
      {isStopped ? (
        <form method="post" action={`${ACCOUNTS_PAGE_PATH}/${id}/allow`}>
          <FormToken user={user} />
          <Button>
            Allow<span class="visually-hidden"> {email ?? id}</span>
          </Button>
        </form>
      ) : null}
    </li>
  );
}
