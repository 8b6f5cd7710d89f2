/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../contract/key.ts";
import type { UnfinishedOnRevoke } from "../domain/pause.ts";
import { Button, FormToken } from "./form.tsx";
import { roleWord } from "./key-words.ts";
import { KeyName } from "./keys.tsx";
import { Layout } from "./layout.tsx";
import { Facts, Time } from "./parts.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";
import { agoWords } from "./words.ts";

export interface RevokeKeyPageProps {
  readonly user: PageUser;
  readonly of: ShownKey;
  readonly now: Date;
}

/** The first is harmless: whoever only replaces a key changes nothing. */
const UNFINISHED: readonly (readonly [UnfinishedOnRevoke, string])[] = [
  ["keep", "Go on: they are sent as if nothing had happened"],
  ["pause", "Are paused: nothing of them is sent until you resume"],
  ["cancel", "Are cancelled: nothing of them is sent any more"],
];

/** Asks before a key goes for good. */
export function revokeKeyPage({ user, of: key, now }: RevokeKeyPageProps): string {
  const { id, role, last4, createdAt, lastUsedAt } = key;
  return render(
    <Layout title="Revoke a key?" place="Keys" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/keys">All keys</a>
        </p>
        <h1>Revoke this key?</h1>
        <p>Whoever uses it is refused from then on, at once and for good.</p>
      </div>
      <form method="post" action={`/keys/${id}/revoke`} class="card">
        <FormToken user={user} />
        <Facts
          rows={[
            ["Name", <KeyName of={key} />],
            ["Role", roleWord(role)],
            ["Ends in", <code>{last4}</code>],
            ["Made", <Time at={createdAt} />],
            ["Last used", lastUsedAt === null ? "Never" : agoWords(now.getTime() - lastUsedAt.getTime())],
          ]}
        />
        <fieldset>
          <legend>Its actions that have not ended</legend>
          {UNFINISHED.map(([value, words]) => (
            <label class="choice">
              <input type="radio" name="unfinished" value={value} checked={value === "keep"} /> {words}
            </label>
          ))}
        </fieldset>
        <div class="choices">
          <Button look="bad">Revoke it</Button>
          <a class="button button-plain" href="/keys">
            Keep it
          </a>
        </div>
      </form>
    </Layout>,
  );
}
