/** @jsxImportSource hono/jsx */
import { AccountParams } from "../accounts/account-routes.ts";
import { signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import { deletableText, shrinkAdvice } from "../accounts/server-size.ts";
import { formatSize } from "../core/action.ts";
import type { EffectiveSettings } from "../config/config.ts";
import type { ServerSetting } from "../config/server-settings.ts";
import {
  DAY_MS,
  DEDUPE_WINDOW_MS,
  HOUR_MS,
  NOTIFY_DELAYS_MS,
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
} from "../core/limits.ts";
import { authorize } from "../core/roles.ts";
import { seeOther } from "../http/response.ts";
import type { Person } from "../http/session.ts";
import { PostForm, Submit } from "../ui/form.tsx";
import { render } from "../ui/layout.tsx";
import { answerForm, answerOn, type ById, personPages } from "./forms.ts";
import { Card, Day, Dot, type FactRows, Facts, LinkButton, Name, Notice, UntrustedText } from "../ui/parts.tsx";
import { List, None, RowAction, SETTINGS_PATHS, SettingsPage, Tagged } from "./settings-frame.tsx";
import { counted, duration, number } from "../ui/text.ts";
import type { PageDeps } from "./needs.ts";

interface MailNotice {
  readonly isGood: boolean;
  readonly text: string;
}

/** What is in force on the server, for owners. It is changed in its environment. */
async function serverPage(deps: PageDeps, user: Person, notice: MailNotice | null): Promise<string> {
  const { caller } = user;
  authorize(caller, "manage");
  // Of the file: null where there is none, or where it is not this person's to see.
  const [settings, size, isOperator] = await Promise.all([
    deps.settingsFor(caller),
    deps.readSize(caller),
    deps.signUpGate.isOperator(caller),
  ]);
  return render(
    <SettingsPage
      user={user}
      section="Server"
      intro={`Outgate ${deps.version}. These settings come from the server’s environment: changes need a restart.`}
      actions={isOperator ? <LinkButton href={ACCOUNTS_PAGE_PATH}>Accounts of this service</LinkButton> : undefined}
    >
      {notice === null ? null : (
        <Notice tone={notice.isGood ? "good" : "bad"}>
          <UntrustedText text={notice.text} />
        </Notice>
      )}
      <Card id="mail" title="Mail">
        <p class="quiet">
          {settings.sendsMail
            ? "This server sends mail: requests for approval, invitations and links that set a password. A test goes to your own address."
            : "This server sends no mail: no mail provider is set (MAILGUN_API_KEY). Requests awaiting approval are on the page Approvals, and links are shown where they are created."}
        </p>
        {settings.sendsMail ? (
          <PostForm user={user} action={MAIL_TEST_PATH}>
            <Submit look="plain">Send a test mail</Submit>
          </PostForm>
        ) : null}
      </Card>
      {size === null ? null : (
        <Card id="database" title="Database">
          <Facts
            rows={[
              ["Size of the file", formatSize(size.bytes)],
              ["Free for the next rows", size.freeBytes === 0 ? null : formatSize(size.freeBytes)],
              ["Retention would free", deletableText(size)],
              ["Note", shrinkAdvice(size)],
            ]}
          />
        </Card>
      )}
      {settings.all === null ? (
        sectionsOf(settings).map(([id, title, rows]) => (
          <Card id={id} title={title}>
            <Facts rows={rows} />
          </Card>
        ))
      ) : (
        <AllSettings settings={settings.all} />
      )}
    </SettingsPage>,
  );
}

const TOPICS = [
  ["sending", "Sending", /^(ATTEMPT_|RETRY_|DISPATCH_|KEEP_|ALLOWED_|RETENTION_)/],
  ["approvals", "Approvals", /^(APPROV|AGENT_APPROVAL$)/],
  ["mailing", "Mail provider", /^MAILGUN_/],
  ["access", "Access", /^(OIDC_|SIGNUPS$|TRUSTED_PROXIES$|RATE_LIMIT_|MCP_|BOOTSTRAP_)/],
  // What no other has.
  ["service", "Service", /^/],
] as const;

function AllSettings({ settings }: { readonly settings: readonly ServerSetting[] }) {
  const byTopic = Map.groupBy(settings, ({ name }) => TOPICS.find(([, , pattern]) => pattern.test(name))?.[0]);
  return TOPICS.map(([id, title]) => (
    <List
      id={id}
      title={title}
      rows={byTopic.get(id) ?? []}
      columns={[
        ["Setting", ({ name }) => <code>{name}</code>],
        ["Value", valueCell],
        ["What it does", ({ description }) => <span class="quiet">{description}</span>, "wide"],
      ]}
    />
  ));
}

function valueCell({ name, value, isSet, isSecret }: ServerSetting) {
  if (isSecret && isSet) return <Dot tone="good">Set</Dot>;
  if (value === null) return <None>Not set</None>;
  const words = wordsOf(name, value);
  const given = <code class="address">{value}</code>;
  if (words === null && isSet) return given;
  return (
    <>
      {words ?? given}
      <span class="says">
        {words === null ? null : given}
        {words === null || isSet ? null : ", "}
        {isSet ? null : "default"}
      </span>
    </>
  );
}

/** What people read for a number of the environment; null: it says enough by itself. */
function wordsOf(name: string, value: string): string | null {
  const count = Number(value);
  if (name === "RATE_LIMIT_PER_SECOND") return count === 0 ? "Not limited" : `${number(count)} a second`;
  const [, unitMs] = UNITS.find(([unit]) => name.endsWith(unit)) ?? [];
  return unitMs === undefined ? null : duration(count * unitMs);
}

/** The units of settings, by the end of their names. */
const UNITS = [
  ["_MS", 1],
  ["_HOURS", HOUR_MS],
  ["_DAYS", DAY_MS],
] as const;

const MAIL_TEST_PATH = "/settings/server/mail-test";

/** A value and the name of its setting. */
function setting(text: string, name: string) {
  return (
    <>
      {text} <code class="setting">{name}</code>
    </>
  );
}

/** For owners who don't run the server: what concerns their calls. */
function sectionsOf(settings: EffectiveSettings): readonly (readonly [id: string, title: string, rows: FactRows])[] {
  const { rateLimitPerSecond, approvalTtlHours, approvers, retentionDays } = settings;
  const rate = rateLimitPerSecond === 0 ? "Not limited." : `${counted(rateLimitPerSecond, "request")} a second.`;
  const wait = `${duration(settings.retryBaseMs)} after the first failure, doubled after each further one, ${duration(settings.retryCapMs)} at most.`;
  const callbacks = NOTIFY_DELAYS_MS.map(duration).join(", ");
  const sizes = `Request body ${kib(REQUEST_BODY_BYTES_MAX)}; stored response ${kib(RESPONSE_BODY_BYTES_MAX)}.`;
  const expire =
    approvalTtlHours === null ? "Never." : `After ${counted(approvalTtlHours, "hour")}; the action is then cancelled.`;
  const mails = settings.sendsMail ? "On." : "Off: no mail provider is set.";
  const link = settings.approvalLinks === "confirm" ? "Ask for confirmation." : "Decide when they are opened.";
  const people =
    approvers.length > 0
      ? `People in the account, and ${approvers.join(", ")}`
      : "People in the account. Owner keys without a hold can name anyone.";
  const agents =
    settings.agentApproval === "elicit"
      ? "Its MCP client can ask its user, except for actions held by a key."
      : "Never.";
  const kept = retentionDays === null ? "Forever." : `For ${counted(retentionDays, "day")} after they end.`;
  return [
    [
      "targets",
      "Where calls may go",
      [
        ["Allowed", setting(settings.targets, "ALLOWED_PRIVATE_TARGETS")],
        ["Never", "Cloud metadata, link-local and multicast addresses, whatever the settings say."],
        ["Checked", "Every address that a name resolves to, at every attempt. Calls go only to checked addresses."],
      ],
    ],
    [
      "delivery",
      "Delivery and limits",
      [
        ["Rate limit", setting(rate, "RATE_LIMIT_PER_SECOND")],
        ["Attempt timeout", setting(`${duration(settings.attemptTimeoutMs)} at most.`, "ATTEMPT_TIMEOUT_MS")],
        ["Retry delay", setting(wait, "RETRY_BASE_MS, RETRY_CAP_MS")],
        ["Attempts per run", `${RETRIES_DEFAULT} by default, ${RETRIES_MAX} at most.`],
        ["Callback attempts", `Immediately, and ${callbacks} after failures; then given up.`],
        ["Size limits", sizes],
        ["Deduplication window", `${duration(DEDUPE_WINDOW_MS)}.`],
      ],
    ],
    [
      "approvals",
      "Approvals",
      [
        ["Approvals expire", setting(expire, "APPROVAL_TTL_HOURS")],
        ["Approval emails", setting(mails, "MAILGUN_API_KEY")],
        ["Email links", setting(link, "APPROVAL_LINKS")],
        ["Approvers", setting(people, "APPROVERS")],
        ["Approval by an agent", setting(agents, "AGENT_APPROVAL")],
      ],
    ],
    ["retention", "Retention", [["Finished actions are kept", setting(kept, "RETENTION_DAYS")]]],
  ];
}

function kib(bytes: number): string {
  return bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;
}

export const ACCOUNTS_PAGE_PATH = "/settings/accounts";

async function accountsPage({ signUpGate }: PageDeps, user: Person): Promise<string> {
  // Stopped accounts come first.
  const [accounts, closedBy] = await Promise.all([signUpGate.list(user.caller), signUpGate.closedBy()]);
  return render(
    <SettingsPage
      user={user}
      section="Server"
      title="Accounts"
      back={{ href: SETTINGS_PATHS.server, name: "Server" }}
      intro={
        <>
          {closedBy === null
            ? "Sign-ups are open: anyone who can reach this service can create an account with an owner key."
            : signUpsClosedMessage(closedBy)}{" "}
          Accounts created before sign-ups closed are stopped: their keys are refused and nothing is sent until you
          allow them. Allow only accounts of people you know.
        </>
      }
    >
      <List
        title="Accounts"
        rows={accounts}
        columns={[
          [
            "First person",
            ({ email, isFirst }) => (
              <Tagged
                name={email === null ? <None>No user yet</None> : <Name text={email} />}
                tag={isFirst ? "First account" : null}
              />
            ),
            "wide",
          ],
          ["State", ({ isStopped }) => (isStopped ? <Dot tone="bad">Stopped</Dot> : <Dot tone="good">Allowed</Dot>)],
          ["Created", ({ createdAt }) => <Day at={createdAt} />],
          ["Allowed", ({ allowedAt }) => (allowedAt === null ? <None /> : <Day at={allowedAt} />)],
          ["ID", ({ id }) => <code>{id}</code>],
        ]}
        actions={({ id, email, isStopped }) =>
          isStopped ? (
            <RowAction
              user={user}
              path={`${ACCOUNTS_PAGE_PATH}/${id}/allow`}
              look="main"
              of={email ?? id}
              name="Allow"
            />
          ) : null
        }
      />
    </SettingsPage>,
  );
}

export function serverPages(deps: PageDeps) {
  const { signUpGate, ownMails, flash, formOf } = deps;
  const testMail = answerForm(
    formOf,
    async ({ person }) => {
      authorize(person.caller, "manage");
      const { error } = await ownMails.test(person);
      const text = error === null ? `The test mail to ${person.email} was delivered to the mail provider.` : error;
      return flash.redirect(person, SETTINGS_PATHS.server, { isGood: error === null, text });
    },
    ({ person }, { problem }) => serverPage(deps, person, { isGood: false, text: problem }),
  );
  const allow = answerOn(
    deps,
    ACCOUNTS_PAGE_PATH,
  )<ById>(({ person, params }) => signUpGate.allow(person.caller, params.id));
  return personPages(deps)
    .get(SETTINGS_PATHS.server, ({ context, person }) => {
      // Safe: only the test of mail writes a flash for this path.
      const notice = flash.read(context, person) as MailNotice | null;
      return serverPage(deps, person, notice);
    })
    .get(MAIL_TEST_PATH, () => seeOther("own", SETTINGS_PATHS.server))
    .post(MAIL_TEST_PATH, testMail)
    .get(ACCOUNTS_PAGE_PATH, ({ person }) => accountsPage(deps, person))
    .post(`${ACCOUNTS_PAGE_PATH}/:id/allow`, allow, { params: AccountParams });
}
