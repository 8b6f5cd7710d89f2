/** @jsxImportSource hono/jsx */
import type { ListedHost } from "../domain/callback-host.ts";
import { ACCOUNTS_PAGE_PATH } from "./accounts.tsx";
import { CallbackHosts } from "./callback-hosts.tsx";
import { UntrustedText } from "./foreign.tsx";
import { Layout } from "./layout.tsx";
import { Notifications, type NotificationsProps } from "./notifications.tsx";
import { render } from "./render.ts";
import { type Rules, RulesView } from "./rules.tsx";
import { OriginForm } from "./signing.tsx";
import type { PageUser } from "./visitor.ts";

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
