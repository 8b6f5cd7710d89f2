/** @jsxImportSource hono/jsx */
import type { ShownAccount } from "../contract/accounts.ts";
import { type SignUpsClosedBy, signUpsClosedWords } from "../domain/sign-ups.ts";
import { UntrustedText } from "./foreign.tsx";
import { Button, FormToken } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { Chip, Day } from "./parts.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

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
