/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../accounts/schemas.ts";
import { UntrustedText } from "./code.tsx";
import { holdWord, roleWord, scopeWord, type PageUser, agoWords } from "./words.ts";
import { Layout, listPath, render } from "./layout.tsx";
import { Chip, Day, Notice, Facts, Time } from "./parts.tsx";
import type { UnfinishedOnRevoke } from "../pauses/pause.ts";
import { Button, FormToken } from "./form.tsx";

export interface KeysPageProps {
  readonly user: PageUser;
  /** The keys of this page; active keys first. */
  readonly keys: readonly ShownKey[];
  /** Path of the next page; null when there is none. */
  readonly next: string | null;
  /** The key that was just revoked. */
  readonly revoked: ShownKey | null;
  /** Ids of those that are paused. */
  readonly paused: ReadonlySet<string>;
  readonly now: Date;
}

/** The keys of the account, for its people. */
export function keysPage({ user, keys, next, revoked, paused, now }: KeysPageProps): string {
  return render(
    <Layout title="Keys" place="Keys" user={user}>
      <div class="head-row">
        <div class="head">
          <h1>Keys</h1>
          <p class="quiet">Programs and agents call the API with a key. Its role sets what it can do.</p>
        </div>
        <div class="buttons">
          <a class="button button-plain" href="/settings/pauses">
            Pauses
          </a>
          <a class="button" href="/keys/new">
            Create a key
          </a>
        </div>
      </div>
      {revoked === null ? null : (
        <Notice tone="good">
          <KeyName of={revoked} /> is revoked and no longer works.
        </Notice>
      )}
      <ul class="card rows">
        {keys.map((key) => (
          <Row of={key} isPaused={paused.has(key.id)} now={now} />
        ))}
      </ul>
      {next === null ? null : (
        <p>
          <a class="button button-plain" href={next}>
            Next page
          </a>
        </p>
      )}
    </Layout>,
  );
}

interface RowProps {
  readonly of: ShownKey;
  readonly isPaused: boolean;
  readonly now: Date;
}

function Row({ of: key, isPaused, now }: RowProps) {
  const { id, role, hold, scope, last4, createdAt, lastUsedAt, revokedAt } = key;
  const held = holdWord(hold);
  const wide = scopeWord(role, scope);
  return (
    <li class="row-split">
      <div class="stack">
        <p class="chips">
          <KeyName of={key} /> <Chip tone={role === "owner" ? "wait" : "busy"}>{roleWord(role)}</Chip>{" "}
          {held === null ? null : <Chip tone="still">{held}</Chip>}
          {wide === null ? null : <Chip tone="wait">{wide}</Chip>}
          {revokedAt === null ? null : <Chip tone="bad">Revoked</Chip>}
          {isPaused ? <Chip tone="wait">Paused</Chip> : null}
        </p>
        <p class="quiet small">
          Ends in <code>{last4}</code>. Created <Day at={createdAt} />.{" "}
          {lastUsedAt === null ? "Never used." : `Last used ${agoWords(now.getTime() - lastUsedAt.getTime())}.`}
          {revokedAt === null ? null : (
            <>
              {" "}
              Revoked <Day at={revokedAt} />.
            </>
          )}
        </p>
      </div>
      <div class="buttons">
        <a class="button button-plain" href={listPath({ created_by: id })}>
          Actions<span class="visually-hidden"> of {key.name}</span>
        </a>
        <a class="button button-plain" href={`/keys/new?replaces=${id}`}>
          Replace<span class="visually-hidden"> {key.name}</span>
        </a>
        {isPaused ? null : (
          <a class="button button-plain" href={`/settings/pauses?key=${id}`}>
            Pause<span class="visually-hidden"> {key.name}</span>
          </a>
        )}
        {revokedAt === null ? (
          <a class="button button-bad" href={`/keys/${id}/revoke`}>
            Revoke<span class="visually-hidden"> {key.name}</span>
          </a>
        ) : null}
      </div>
    </li>
  );
}

/** The untrusted name of a key. */
export function KeyName({ of: { name } }: { readonly of: Pick<ShownKey, "name"> }) {
  return (
    <b class="name">
      <UntrustedText text={name} />
    </b>
  );
}

export interface RevokeKeyPageProps {
  readonly user: PageUser;
  readonly of: ShownKey;
  readonly now: Date;
}

/** The default comes first: it changes no action, for rotating a key. */
const UNFINISHED: readonly (readonly [UnfinishedOnRevoke, string])[] = [
  ["keep", "Continue: they are sent as usual"],
  ["pause", "Pause: they are not sent until you resume"],
  ["cancel", "Cancel: they are not sent"],
];

/** Asks for confirmation before a key is revoked. */
export function revokeKeyPage({ user, of: key, now }: RevokeKeyPageProps): string {
  const { id, role, last4, createdAt, lastUsedAt } = key;
  return render(
    <Layout title="Revoke a key?" place="Keys" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/keys">All keys</a>
        </p>
        <h1>Revoke this key?</h1>
        <p>Requests with this key are refused immediately. You can’t undo this.</p>
      </div>
      <form method="post" action={`/keys/${id}/revoke`} class="card">
        <FormToken user={user} />
        <Facts
          rows={[
            ["Name", <KeyName of={key} />],
            ["Role", roleWord(role)],
            ["Ends in", <code>{last4}</code>],
            ["Created", <Time at={createdAt} />],
            ["Last used", lastUsedAt === null ? "Never" : agoWords(now.getTime() - lastUsedAt.getTime())],
          ]}
        />
        <fieldset>
          <legend>Unfinished actions of this key</legend>
          {UNFINISHED.map(([value, words]) => (
            <label class="choice">
              <input type="radio" name="unfinished" value={value} checked={value === "keep"} /> {words}
            </label>
          ))}
        </fieldset>
        <div class="choices">
          <Button look="bad">Revoke key</Button>
          <a class="button button-plain" href="/keys">
            Cancel
          </a>
        </div>
      </form>
    </Layout>,
  );
}
