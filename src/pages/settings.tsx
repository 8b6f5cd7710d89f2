/** @jsxImportSource hono/jsx */
import type { EffectiveSettings } from "../config/config.ts";
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
import type { ListedAccount } from "../../db/account-store.ts";
import { type SignUpsClosedBy, signUpsClosedMessage } from "../accounts/sign-up-gate.ts";

export interface SettingsPageProps {
  readonly user: PageUser;
  readonly rules: Rules;
  /** The newest ones. */
  readonly notifications: NotificationsProps;
  readonly callbackHosts: readonly ListedHost[];
  /** The visitor can manage the accounts of the service. */
  readonly isOperator: boolean;
}

/** Settings of the account, and the settings of the server. */
export function settingsPage({ user, rules, notifications, callbackHosts, isOperator }: SettingsPageProps): string {
  return render(
    <Layout title="Settings" place="Settings" user={user}>
      <h1>Settings</h1>
      <section class="card" aria-labelledby="signing">
        <h2 id="signing">Signing secrets</h2>
        <p class="quiet">
          Every call and callback is signed. Each origin has its own secret, so that one target can’t forge calls to
          another. Callbacks have separate secrets. <a href="/docs/verify">Verify signatures</a>.
        </p>
        <OriginForm user={user} />
        <p class="quiet small">
          If secrets have leaked, <a href="/settings/rotation">rotate the secrets of all origins</a>.
        </p>
      </section>
      <section class="card" aria-labelledby="callback-hosts">
        <h2 id="callback-hosts">Callback hosts</h2>
        <CallbackHosts user={user} hosts={callbackHosts} />
      </section>
      <section class="told" aria-labelledby="told">
        <h2 id="told">Callbacks and emails</h2>
        <Notifications {...notifications} />
      </section>
      <section class="card" aria-labelledby="watch">
        <h2 id="watch">Pauses and audit log</h2>
        <p class="quiet">
          <a href="/settings/pauses">Pause the account or a key</a> to send nothing until you resume. The{" "}
          <a href="/audit">audit log</a> shows who did what to this account.
        </p>
      </section>
      {isOperator ? (
        <section class="card" aria-labelledby="accounts">
          <h2 id="accounts">Accounts</h2>
          <p class="quiet">
            <a href={ACCOUNTS_PAGE_PATH}>The accounts of this service</a>: who signed up, and whether sign-ups are open.
          </p>
        </section>
      ) : null}
      <section class="card" aria-labelledby="log-in">
        <h2 id="log-in">Your login</h2>
        <p class="quiet">
          You are logged in as <UntrustedText text={user.email} />.{" "}
          <a href="/settings/password">Change your password</a>.
        </p>
      </section>
      <RulesView rules={rules} />
    </Layout>,
  );
}

/** The server's settings that this person can see. */
export type Rules = EffectiveSettings;

export function RulesView({ rules }: { readonly rules: Rules }) {
  return (
    <>
      <Section id="targets" title="Where calls may go" rows={targetRows(rules)} />
      <Section id="delivery" title="Delivery and limits" rows={deliveryRows(rules)} />
      <Section id="approvals" title="Approvals" rows={approvalRows(rules)} />
      <Section id="retention" title="Retention" rows={retentionRows(rules)} />
      <p class="foot">These are settings of the server. Changes need a restart.</p>
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

/** A value and the name of its setting. */
function SettingValue({ words, by }: { readonly words: string; readonly by: string }) {
  return (
    <>
      {words} <code class="setting">{by}</code>
    </>
  );
}

function targetRows({ targets }: Rules): Rows {
  return [
    ["Allowed", <SettingValue words={targets} by="ALLOWED_PRIVATE_TARGETS" />],
    ["Never", "Cloud metadata, link-local and multicast addresses, whatever the settings say."],
    ["Checked", "Every address that a name resolves to, at every attempt. Calls go only to checked addresses."],
  ];
}

function deliveryRows(rules: Rules): Rows {
  const { rateLimitPerSecond, attemptTimeoutMs, retryBaseMs, retryCapMs } = rules;
  const rate = rateLimitPerSecond === 0 ? "Not limited." : `${counted(rateLimitPerSecond, "request")} a second.`;
  const wait = `${duration(retryBaseMs)} after the first failure, doubled after each further one, ${duration(retryCapMs)} at most.`;
  const callbacks = NOTIFY_DELAYS_MS.map(duration).join(", ");
  return [
    ["Rate limit", <SettingValue words={rate} by="RATE_LIMIT_PER_SECOND" />],
    ["Attempt timeout", <SettingValue words={`${duration(attemptTimeoutMs)} at most.`} by="ATTEMPT_TIMEOUT_MS" />],
    ["Retry delay", <SettingValue words={wait} by="RETRY_BASE_MS, RETRY_CAP_MS" />],
    ["Attempts per run", `${RETRIES_DEFAULT} by default, ${RETRIES_MAX} at most.`],
    ["Callback attempts", `Immediately, and ${callbacks} after failures; then given up.`],
    ["Size limits", `Request body ${kib(REQUEST_BODY_BYTES_MAX)}; stored response ${kib(RESPONSE_BODY_BYTES_MAX)}.`],
    ["Deduplication window", `${duration(DEDUPE_WINDOW_MS)}.`],
  ];
}

function approvalRows(rules: Rules): Rows {
  const { approvalTtlHours, approvalLinks, approvers, agentApproval, sendsMail } = rules;
  const expire =
    approvalTtlHours === null ? "Never." : `After ${counted(approvalTtlHours, "hour")}; the action is then cancelled.`;
  const link = approvalLinks === "confirm" ? "Ask for confirmation." : "Decide when they are opened.";
  const agents =
    agentApproval === "elicit" ? "Its MCP client can ask its user, except for actions held by a key." : "Never.";
  return [
    ["Approvals expire", <SettingValue words={expire} by="APPROVAL_TTL_HOURS" />],
    [
      "Approval emails",
      <SettingValue words={sendsMail ? "On." : "Off: no mail provider is set."} by="MAILGUN_API_KEY" />,
    ],
    ["Email links", <SettingValue words={link} by="APPROVAL_LINKS" />],
    ["Approvers", <SettingValue words={approverWords(approvers)} by="APPROVERS" />],
    ["Approval by an agent", <SettingValue words={agents} by="AGENT_APPROVAL" />],
  ];
}

function approverWords(approvers: readonly string[]): string {
  if (approvers.length > 0) return `People in the account, and ${approvers.join(", ")}`;
  return "People in the account. Owner keys without a hold can name anyone.";
}

function retentionRows({ retentionDays }: Rules): Rows {
  const kept = retentionDays === null ? "Forever." : `For ${counted(retentionDays, "day")} after they end.`;
  return [["Finished actions are kept", <SettingValue words={kept} by="RETENTION_DAYS" />]];
}

function kib(bytes: number): string {
  return bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;
}

export interface CallbackHostsProps {
  readonly user: PageUser;
  readonly hosts: readonly ListedHost[];
  /** The refused input, and what is wrong with it. */
  readonly typed?: string;
  readonly problem?: string | null;
}

export function CallbackHosts({ user, hosts, typed = "", problem = null }: CallbackHostsProps) {
  return (
    <>
      <p class="quiet">
        Actions of a key with a hold wait for approval, but their callbacks are sent before that. They can go only to
        these hosts. Keys without a hold can use any host.
      </p>
      {hosts.length === 0 ? (
        <p>No hosts yet: callbacks of keys with a hold are refused.</p>
      ) : (
        <ul class="rows" aria-label="Callback hosts">
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
            hint="For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http."
            isRequired
            autocomplete="off"
            problem={problem}
          />
          <Button>Add host</Button>
        </form>
      )}
    </>
  );
}

/** The form on a page of its own, after invalid input. */
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
  /** Stopped accounts first. */
  readonly accounts: readonly ListedAccount[];
  /** Why sign-ups are closed; null if they are open. */
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
            ? "Sign-ups are open: anyone who can reach this service can create an account with an owner key."
            : signUpsClosedMessage(closedBy)}
        </p>
        <p class="quiet">
          Accounts created before sign-ups closed are stopped: their keys are refused and nothing is sent until you
          allow them. Allow only accounts of people you know.
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

function Row({ of: account, user }: { readonly of: ListedAccount; readonly user: PageUser }) {
  const { id, email, createdAt, isFirst, isStopped, allowedAt } = account;
  return (
    <li class="row-split">
      <div class="stack">
        <p class="chips">
          <b class="name">{email === null ? "No user yet" : <UntrustedText text={email} />}</b>{" "}
          {isFirst ? <Chip tone="still">First account</Chip> : null}
          {isStopped ? <Chip tone="bad">Stopped</Chip> : null}
        </p>
        <p class="quiet small">
          <code>{id}</code>. Created <Day at={createdAt} />.
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
