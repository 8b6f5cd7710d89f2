/** @jsxImportSource hono/jsx */
import { Foreign } from "./foreign.tsx";
import { Layout } from "./layout.tsx";
import { Notifications, type NotificationsProps } from "./notifications.tsx";
import { render } from "./render.ts";
import { type Rules, RulesView } from "./rules.tsx";
import { OriginForm } from "./signing.tsx";
import type { Visitor } from "./visitor.ts";

export interface SettingsPageProps {
  readonly visitor: Visitor;
  readonly rules: Rules;
  /** The newest ones. */
  readonly notifications: NotificationsProps;
}

/** What an account's people can set, what they can look after, and what is in force. */
export function settingsPage({ visitor, rules, notifications }: SettingsPageProps): string {
  return render(
    <Layout title="Settings" place="Settings" visitor={visitor}>
      <h1>Settings</h1>
      <section class="card" aria-labelledby="signing">
        <h2 id="signing">Signing secrets</h2>
        <p class="quiet">
          Every call is signed. Each origin has a secret of its own, so that one target can’t forge calls to another.{" "}
          <a href="/docs/verify">How a target verifies them</a>.
        </p>
        <OriginForm visitor={visitor} />
        <p class="quiet small">
          Did something leak? <a href="/settings/rotation">Give all origins new secrets</a>.
        </p>
      </section>
      <section class="told" aria-labelledby="told">
        <h2 id="told">Callbacks and mails</h2>
        <Notifications {...notifications} />
      </section>
      <section class="card" aria-labelledby="log-in">
        <h2 id="log-in">Your log-in</h2>
        <p class="quiet">
          You are <Foreign text={visitor.email} />. <a href="/settings/password">Change your password</a>.
        </p>
      </section>
      <RulesView rules={rules} />
    </Layout>,
  );
}
