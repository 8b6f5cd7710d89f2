/** @jsxImportSource hono/jsx */
import type { ListedAccount } from "../../db/account-store.ts";
import type { ListedHost } from "../accounts/callback-hosts.ts";
import { type SignUpsClosedBy, signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import type { EffectiveSettings } from "../config/config.ts";
import {
  DEDUPE_WINDOW_MS,
  NOTIFY_DELAYS_MS,
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
} from "../config/limits.ts";
import { CallbackHosts, Notifications, type NotificationsProps } from "./callbacks.tsx";
import { CHANNELS_PATH } from "./channels.tsx";
import { Button, PostForm } from "./form.tsx";
import { HOSTS_PATH } from "./hosts.tsx";
import { Layout, LOG_IN_PATH, render, SETTINGS_LINK } from "./layout.tsx";
import { Card, Dot, DayOf, type FactRows, Facts, PageHead, FieldRow, UntrustedText } from "./parts.tsx";
import { OriginForm } from "./signing.tsx";
import { PEOPLE_PATH } from "./team.tsx";
import { counted, duration, type PageUser, roleLabel } from "./text.ts";

interface SettingsPageProps {
  readonly user: PageUser;
  /** The server's settings that this person can see. */
  readonly rules: EffectiveSettings;
  /** The newest ones. */
  readonly notifications: NotificationsProps;
  readonly callbackHosts: readonly ListedHost[];
  /** The visitor can manage the accounts of the service. */
  readonly isOperator: boolean;
}

/** Settings of the account, and the settings of the server. */
export function settingsPage({ user, rules, notifications, callbackHosts, isOperator }: SettingsPageProps): string {
  return render(
    <Layout title="Settings" nav="Settings" user={user}>
      <h1>Settings</h1>
      <Card id="signing" title="Signing secrets">
        <p class="quiet">
          Every call and callback is signed. Each origin has its own secret, so that one target can’t forge calls to
          another. Callbacks have separate secrets. <a href="/docs/verify">Verify signatures</a>.
        </p>
        <OriginForm user={user} />
        <p class="quiet small">
          If secrets have leaked, <a href="/settings/rotation">rotate the secrets of all origins</a>.
        </p>
      </Card>
      <Card id="callback-hosts" title="Callback hosts">
        <CallbackHosts user={user} hosts={callbackHosts} />
      </Card>
      <ChannelsCard />
      <Card id="hosts" title="Hosts">
        <p class="quiet">
          <a href={HOSTS_PATH}>Set up hosts</a>: the timeout of calls, the delay between attempts, statuses after which
          none follows, and how many calls a host gets.
        </p>
      </Card>
      <section class="section" aria-labelledby="notifications">
        <h2 id="notifications">Callbacks and emails</h2>
        <Notifications {...notifications} />
      </section>
      <Card id="watch" title="Pauses and audit log">
        <p class="quiet">
          <a href="/settings/pauses">Pause the account, a key or a host</a> to send nothing until you resume. The{" "}
          <a href="/audit">audit log</a> shows who did what to this account.
        </p>
      </Card>
      {isOperator ? (
        <Card id="accounts" title="Accounts">
          <p class="quiet">
            <a href={ACCOUNTS_PAGE_PATH}>The accounts of this service</a>: who signed up, and whether sign-ups are open.
          </p>
        </Card>
      ) : null}
      <Card id="people" title="People">
        <p class="quiet">
          <a href={PEOPLE_PATH}>The people of this account</a>: their roles, and invitations.
        </p>
      </Card>
      <OwnLogin user={user} />
      {sectionsOf(rules).map(([id, title, rows]) => (
        <Card id={id} title={title}>
          <Facts rows={rows} />
        </Card>
      ))}
      <p class="foot">These are settings of the server. Changes need a restart.</p>
    </Layout>,
  );
}

/** The settings of somebody who doesn't own the account. */
export function ownSettingsPage({ user }: Pick<SettingsPageProps, "user">): string {
  return render(
    <Layout title="Settings" nav="Settings" user={user}>
      <h1>Settings</h1>
      <OwnLogin user={user} />
      <p class="quiet">
        Your role in this account is {roleLabel(user.role).toLowerCase()}. Its owners manage keys, pauses, people and
        signing secrets.
      </p>
    </Layout>,
  );
}

function ChannelsCard() {
  return (
    <Card id="channels" title="Channels">
      <p class="quiet">
        <a href={CHANNELS_PATH}>Set up channels</a>: where people are asked for approval, by email, in Slack or by a
        webhook.
      </p>
    </Card>
  );
}

function OwnLogin({ user }: Pick<SettingsPageProps, "user">) {
  return (
    <Card id="log-in" title="Your login">
      <p class="quiet">
        You are logged in as <UntrustedText text={user.email} />. <a href={LOG_IN_PATH}>Your accounts and sessions</a>.{" "}
        <a href="/settings/password">Change your password</a>.
      </p>
    </Card>
  );
}

/** A value and the name of its setting. */
function setting(text: string, name: string) {
  return (
    <>
      {text} <code class="setting">{name}</code>
    </>
  );
}

/** The server's settings in sections. */
function sectionsOf(settings: EffectiveSettings): readonly (readonly [id: string, title: string, rows: FactRows])[] {
  return [
    ["targets", "Where calls may go", targetRows(settings)],
    ["delivery", "Delivery and limits", deliveryRows(settings)],
    ["approvals", "Approvals", approvalRows(settings)],
    ["retention", "Retention", retentionRows(settings)],
  ];
}

function targetRows({ targets }: EffectiveSettings): FactRows {
  return [
    ["Allowed", setting(targets, "ALLOWED_PRIVATE_TARGETS")],
    ["Never", "Cloud metadata, link-local and multicast addresses, whatever the settings say."],
    ["Checked", "Every address that a name resolves to, at every attempt. Calls go only to checked addresses."],
  ];
}

function deliveryRows(rules: EffectiveSettings): FactRows {
  const { rateLimitPerSecond, attemptTimeoutMs, retryBaseMs, retryCapMs } = rules;
  const rate = rateLimitPerSecond === 0 ? "Not limited." : `${counted(rateLimitPerSecond, "request")} a second.`;
  const wait = `${duration(retryBaseMs)} after the first failure, doubled after each further one, ${duration(retryCapMs)} at most.`;
  const callbacks = NOTIFY_DELAYS_MS.map(duration).join(", ");
  return [
    ["Rate limit", setting(rate, "RATE_LIMIT_PER_SECOND")],
    ["Attempt timeout", setting(`${duration(attemptTimeoutMs)} at most.`, "ATTEMPT_TIMEOUT_MS")],
    ["Retry delay", setting(wait, "RETRY_BASE_MS, RETRY_CAP_MS")],
    ["Attempts per run", `${RETRIES_DEFAULT} by default, ${RETRIES_MAX} at most.`],
    ["Callback attempts", `Immediately, and ${callbacks} after failures; then given up.`],
    ["Size limits", `Request body ${kib(REQUEST_BODY_BYTES_MAX)}; stored response ${kib(RESPONSE_BODY_BYTES_MAX)}.`],
    ["Deduplication window", `${duration(DEDUPE_WINDOW_MS)}.`],
  ];
}

function approvalRows(rules: EffectiveSettings): FactRows {
  const { approvalTtlHours, approvalLinks, approvers, agentApproval, sendsMail } = rules;
  const expire =
    approvalTtlHours === null ? "Never." : `After ${counted(approvalTtlHours, "hour")}; the action is then cancelled.`;
  const link = approvalLinks === "confirm" ? "Ask for confirmation." : "Decide when they are opened.";
  const agents =
    agentApproval === "elicit" ? "Its MCP client can ask its user, except for actions held by a key." : "Never.";
  return [
    ["Approvals expire", setting(expire, "APPROVAL_TTL_HOURS")],
    ["Approval emails", setting(sendsMail ? "On." : "Off: no mail provider is set.", "MAILGUN_API_KEY")],
    ["Email links", setting(link, "APPROVAL_LINKS")],
    ["Approvers", setting(approversText(approvers), "APPROVERS")],
    ["Approval by an agent", setting(agents, "AGENT_APPROVAL")],
  ];
}

function approversText(approvers: readonly string[]): string {
  if (approvers.length > 0) return `People in the account, and ${approvers.join(", ")}`;
  return "People in the account. Owner keys without a hold can name anyone.";
}

function retentionRows({ retentionDays }: EffectiveSettings): FactRows {
  const kept = retentionDays === null ? "Forever." : `For ${counted(retentionDays, "day")} after they end.`;
  return [["Finished actions are kept", setting(kept, "RETENTION_DAYS")]];
}

function kib(bytes: number): string {
  return bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;
}

export const ACCOUNTS_PAGE_PATH = "/settings/accounts";

interface AccountsPageProps {
  readonly user: PageUser;
  /** Stopped accounts first. */
  readonly accounts: readonly ListedAccount[];
  /** Why sign-ups are closed; null if they are open. */
  readonly closedBy: SignUpsClosedBy | null;
}

/** The accounts of the service, and which of them are stopped. */
export function accountsPage({ user, accounts, closedBy }: AccountsPageProps): string {
  return render(
    <Layout title="Accounts" nav="Settings" user={user}>
      <PageHead title="Accounts" back={SETTINGS_LINK}>
        <p>
          {closedBy === null
            ? "Sign-ups are open: anyone who can reach this service can create an account with an owner key."
            : signUpsClosedMessage(closedBy)}
        </p>
        <p class="quiet">
          Accounts created before sign-ups closed are stopped: their keys are refused and nothing is sent until you
          allow them. Allow only accounts of people you know.
        </p>
      </PageHead>
      <ul class="card rows">
        {accounts.map((account) => (
          <AccountRow {...account} user={user} />
        ))}
      </ul>
    </Layout>,
  );
}

function AccountRow({
  id,
  email,
  createdAt,
  isFirst,
  isStopped,
  allowedAt,
  user,
}: ListedAccount & { readonly user: PageUser }) {
  const allow = isStopped ? (
    <PostForm user={user} action={`${ACCOUNTS_PAGE_PATH}/${id}/allow`}>
      <Button>
        Allow<span class="visually-hidden"> {email ?? id}</span>
      </Button>
    </PostForm>
  ) : null;
  return (
    <FieldRow aside={allow}>
      <p class="chips">
        <b class="name">{email === null ? "No user yet" : <UntrustedText text={email} />}</b>{" "}
        {isFirst ? <Dot tone="still">First account</Dot> : null}
        {isStopped ? <Dot tone="bad">Stopped</Dot> : null}
      </p>
      <p class="quiet small">
        <code>{id}</code>. <DayOf event="Created" at={createdAt} />
        <DayOf event=" Allowed" at={allowedAt} />
      </p>
    </FieldRow>
  );
}
