/** @jsxImportSource hono/jsx */
import type { ListedKeyView } from "../accounts/key-list.ts";
import type { KeyView } from "../accounts/schemas.ts";
import type { UnfinishedOnRevoke } from "../pauses/pause.ts";
import { Button, OrCancel, PostForm } from "./form.tsx";
import { Layout, listPath, render } from "./layout.tsx";
import { Dot, DayOf, Facts, LinkButton, Name, NextPage, Notice, PageHead, FieldRow, Time } from "./parts.tsx";
import { KEY_ACTIONS_COUNTED_MAX } from "../config/limits.ts";
import { holdLabel, number, type PageUser, roleLabel, scopeLabel, timeAgo } from "./text.ts";

export const KEYS_LINK = { href: "/keys", name: "All keys" } as const;

interface KeysPageProps {
  readonly user: PageUser;
  /** The keys of this page; active keys first. */
  readonly keys: readonly ListedKeyView[];
  /** Path of the next page; null when there is none. */
  readonly next: string | null;
  /** The key that was just revoked. */
  readonly revoked: KeyView | null;
  /** Ids of those that are paused. */
  readonly paused: ReadonlySet<string>;
  readonly now: Date;
}

/** The keys of the account, for its people. */
export function keysPage({ user, keys, next, revoked, paused, now }: KeysPageProps): string {
  return render(
    <Layout title="Keys" nav="Keys" user={user}>
      <div class="head-row">
        <PageHead title="Keys" intro="Programs and agents call the API with a key. Its role sets what it can do." />
        <div class="buttons">
          <LinkButton href="/settings/pauses">Pauses</LinkButton>
          <LinkButton href="/keys/new" look="main">
            Create a key
          </LinkButton>
        </div>
      </div>
      {revoked === null ? null : (
        <Notice tone="good">
          <KeyName of={revoked} /> is revoked and no longer works.
        </Notice>
      )}
      <ul class="card rows">
        {keys.map((key) => (
          <KeyRow of={key} isPaused={paused.has(key.id)} now={now} />
        ))}
      </ul>
      <NextPage href={next} name="Next page" />
    </Layout>,
  );
}

interface KeyRowProps {
  readonly of: ListedKeyView;
  readonly isPaused: boolean;
  readonly now: Date;
}

function KeyRow({ of: key, isPaused, now }: KeyRowProps) {
  const { id, role, hold, scope, last4, createdAt, lastUsedAt, revokedAt, lastCall } = key;
  const [held, wide] = [holdLabel(hold), scopeLabel(role, scope)];
  const ofKey = <span class="visually-hidden"> {key.name}</span>;
  const buttons = (
    <div class="buttons">
      <LinkButton href={listPath({ created_by: id })}>
        Actions<span class="visually-hidden"> of {key.name}</span>
      </LinkButton>
      <LinkButton href={`/keys/new?replaces=${id}`}>Replace{ofKey}</LinkButton>
      {isPaused ? null : <LinkButton href={`/settings/pauses?key=${id}`}>Pause{ofKey}</LinkButton>}
      {revokedAt === null ? (
        <LinkButton href={`/keys/${id}/revoke`} look="bad">
          Revoke{ofKey}
        </LinkButton>
      ) : null}
    </div>
  );
  return (
    <FieldRow aside={buttons}>
      <p class="chips">
        <KeyName of={key} /> <Dot tone={role === "owner" ? "wait" : "busy"}>{roleLabel(role)}</Dot>{" "}
        {held === null ? null : <Dot tone="still">{held}</Dot>}
        {wide === null ? null : <Dot tone="wait">{wide}</Dot>}
        {revokedAt === null ? null : <Dot tone="bad">Revoked</Dot>}
        {isPaused ? <Dot tone="wait">Paused</Dot> : null}
        {isOver(key, now) ? <Dot tone="bad">Expired</Dot> : null}
      </p>
      <p class="quiet small">
        Ends in <code>{last4}</code>. <DayOf event="Created" at={createdAt} />{" "}
        {lastUsedAt === null ? "Never used." : `Last used ${timeAgo(now.getTime() - lastUsedAt.getTime())}.`}
        <DayOf event=" Revoked" at={revokedAt} />
        {lastCall === null ? null : ` Last action ${timeAgo(now.getTime() - lastCall.createdAt.getTime())}.`}
        {` ${usedToday(key)}`}
      </p>
      <KeyLimitsText of={key} />
    </FieldRow>
  );
}

function isOver({ expiresAt }: KeyView, now: Date): boolean {
  return expiresAt !== null && now >= expiresAt;
}

function usedToday({ dailyActions, actionsToday }: ListedKeyView): string {
  if (dailyActions !== null) return `${number(actionsToday)} of ${number(dailyActions)} actions today.`;
  const more = actionsToday >= KEY_ACTIONS_COUNTED_MAX ? "+" : "";
  return `${number(actionsToday)}${more} actions today.`;
}

/** The limits of a key that has some. */
function KeyLimitsText({ of: { hosts, methods, expiresAt } }: { readonly of: KeyView }) {
  if (hosts === null && methods === null && expiresAt === null) return null;
  return (
    <p class="quiet small">
      {hosts === null ? null : (
        <>
          Only <code>{hosts.join(", ")}</code>.{" "}
        </>
      )}
      {methods === null ? null : `Only ${methods.join(", ")}. `}
      {expiresAt === null ? null : (
        <>
          Works until <Time at={expiresAt} />.
        </>
      )}
    </p>
  );
}

/** The untrusted name of a key. */
export function KeyName({ of: { name } }: { readonly of: Pick<KeyView, "name"> }) {
  return <Name text={name} />;
}

/** A key as an option of a list. */
export function keyLabel({ name, last4, revokedAt }: KeyView): string {
  return `${name} (…${last4})${revokedAt === null ? "" : ", revoked"}`;
}

interface RevokeKeyPageProps {
  readonly user: PageUser;
  readonly of: KeyView;
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
    <Layout title="Revoke a key?" nav="Keys" user={user}>
      <PageHead title="Revoke this key?" back={KEYS_LINK}>
        <p>Requests with this key are refused immediately. You can’t undo this.</p>
      </PageHead>
      <PostForm user={user} action={`/keys/${id}/revoke`} class="card">
        <Facts
          rows={[
            ["Name", <KeyName of={key} />],
            ["Role", roleLabel(role)],
            ["Ends in", <code>{last4}</code>],
            ["Created", <Time at={createdAt} />],
            ["Last used", lastUsedAt === null ? "Never" : timeAgo(now.getTime() - lastUsedAt.getTime())],
          ]}
        />
        <fieldset>
          <legend>Unfinished actions of this key</legend>
          {UNFINISHED.map(([value, label]) => (
            <label>
              <input type="radio" name="unfinished" value={value} checked={value === "keep"} /> {label}
            </label>
          ))}
        </fieldset>
        <OrCancel href="/keys">
          <Button look="bad">Revoke key</Button>
        </OrCancel>
      </PostForm>
    </Layout>,
  );
}
