/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { AccountParams, signUpsClosedMessage } from "../../accounts/sign-up-gate.ts";
import { deletableText, shrinkAdvice } from "../../accounts/server-size.ts";
import { formatSize } from "../../core/action.ts";
import type { EffectiveSettings, ServerSetting } from "../../config/config.ts";
import { type SettingName, SETTINGS } from "../../config/settings.ts";
import { DAY_MS, HOUR_MS } from "../../core/limits.ts";
import { authorize } from "../../core/roles.ts";
import type { Person } from "../../http/session.ts";
import { PostForm, Submit } from "../../ui/form.tsx";
import { render } from "../../ui/layout.tsx";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { Card, day, Dot, Facts, LinkButton, Name, Notice, untrusted } from "../../ui/parts.tsx";
import { List, None, RowAction, Tagged } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import { duration, number } from "../../ui/text.ts";

const MAIL_NOTICE = compile(Type.Object({ isGood: Type.Boolean(), text: Type.String() }));

/** The server's settings in force, for owners. They can be changed only in its environment. */
async function serverPage(deps: PageDeps, user: Person, notice: Checked<typeof MAIL_NOTICE> | null): Promise<string> {
  const { caller } = user;
  authorize(caller, "manage");
  // The file's size: null if there is no file, or this person may not see it.
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
      actions={
        isOperator ? <LinkButton href={SETTINGS_PATHS.accounts}>Accounts of this service</LinkButton> : undefined
      }
    >
      {notice === null ? null : <Notice tone={notice.isGood ? "good" : "bad"}>{untrusted(notice.text)}</Notice>}
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
      <SettingLists settings={settings.all ?? serverSettings(settings)} />
    </SettingsPage>,
  );
}

const TOPICS = [
  ["sending", "Sending", /^(ATTEMPT_|RETRY_|DISPATCH_|KEEP_|ALLOWED_|RETENTION_)/],
  ["approvals", "Approvals", /^(APPROV|AGENT_APPROVAL$)/],
  ["mailing", "Mail provider", /^MAILGUN_/],
  ["access", "Access", /^(OIDC_|SIGNUPS$|TRUSTED_PROXIES$|RATE_LIMIT_|MCP_|BOOTSTRAP_)/],
  // All settings that no other group has.
  ["service", "Service", /^/],
] as const;

function SettingLists({ settings }: { readonly settings: readonly ServerSetting[] }) {
  const byTopic = Map.groupBy(settings, ({ name }) => TOPICS.find(([, , pattern]) => pattern.test(name))?.[0]);
  return TOPICS.filter(([id]) => byTopic.has(id)).map(([id, title]) => (
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
  const words = settingWords(name, value);
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

/** A number of the environment in words; null if the number says enough. */
function settingWords(name: string, value: string): string | null {
  const count = Number(value);
  if (name === "RATE_LIMIT_PER_SECOND") return count === 0 ? "Not limited" : `${number(count)} a second`;
  const [, unitMs] = UNITS.find(([unit]) => name.endsWith(unit)) ?? [];
  return unitMs === undefined ? null : duration(count * unitMs);
}

/** The units of settings, by the ends of their names. */
const UNITS = [
  ["_MS", 1],
  ["_HOURS", HOUR_MS],
  ["_DAYS", DAY_MS],
] as const;

const MAIL_TEST_PATH = "/settings/server/mail-test";

/** The settings that concern the calls of owners who don't run the server, as far as they may see them. */
function serverSettings(settings: EffectiveSettings): readonly ServerSetting[] {
  const values: readonly (readonly [name: SettingName, value: string | number | null])[] = [
    ["ATTEMPT_TIMEOUT_MS", settings.attemptTimeoutMs],
    ["RETRY_BASE_MS", settings.retryBaseMs],
    ["RETRY_CAP_MS", settings.retryCapMs],
    ["ALLOWED_PRIVATE_TARGETS", settings.targets],
    ["RETENTION_DAYS", settings.retentionDays],
    ["APPROVAL_TTL_HOURS", settings.approvalTtlHours],
    ["APPROVAL_LINKS", settings.approvalLinks],
    ["APPROVERS", settings.approvers.join(", ") || null],
    ["AGENT_APPROVAL", settings.agentApproval],
    ["RATE_LIMIT_PER_SECOND", settings.rateLimitPerSecond],
  ];
  return values.map(([name, value]) => ({
    name,
    value: value === null ? null : String(value),
    isSet: true,
    isSecret: false,
    description: SETTINGS[name].description,
  }));
}

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
          ["Created", ({ createdAt }) => day(createdAt)],
          ["Allowed", ({ allowedAt }) => (allowedAt === null ? <None /> : day(allowedAt))],
          ["ID", ({ id }) => <code>{id}</code>],
        ]}
        actions={({ id, email, isStopped }) =>
          isStopped ? (
            <RowAction
              user={user}
              path={`${SETTINGS_PATHS.accounts}/${id}/allow`}
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
  const { signUpGate, ownMails, flash, answer } = deps;
  const testMail = answer(
    async ({ person }) => {
      authorize(person.caller, "manage");
      const { error } = await ownMails.test(person);
      const text = error === null ? `The test mail to ${person.email} was delivered to the mail provider.` : error;
      return flash.redirect(person, SETTINGS_PATHS.server, MAIL_NOTICE, { isGood: error === null, text });
    },
    ({ person }, { problem }) => serverPage(deps, person, { isGood: false, text: problem }),
  );
  const allow = answer<ById>(async ({ person, params: { id } }) => {
    await signUpGate.allow(person.caller, id);
    return SETTINGS_PATHS.accounts;
  });
  return personPages(deps, { [MAIL_TEST_PATH]: SETTINGS_PATHS.server })
    .get(SETTINGS_PATHS.server, ({ context, person }) => {
      const notice = flash.read(context, person, MAIL_NOTICE);
      return serverPage(deps, person, notice);
    })
    .post(MAIL_TEST_PATH, testMail)
    .get(SETTINGS_PATHS.accounts, ({ person }) => accountsPage(deps, person))
    .post(`${SETTINGS_PATHS.accounts}/:id/allow`, allow, { params: AccountParams });
}
