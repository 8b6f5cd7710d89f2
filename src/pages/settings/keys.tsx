/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { isTerminal } from "../../core/action.ts";
import { KEY_ACTIONS_COUNTED_MAX, KEYS_SHOWN_MAX, UNFINISHED_COUNTED_MAX } from "../../core/limits.ts";
import { DomainError, notFound } from "../../core/domain-error.ts";
import type { UnfinishedOnRevoke } from "../../core/pause.ts";
import { KeyParams, type KeyView, type ListedKeyView } from "../../accounts/key-schemas.ts";
import { type KeyService } from "../../accounts/keys.ts";
import { timeAgo } from "../../core/clock.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { seeOther } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { describeActor, type Hold } from "../../core/roles.ts";
import { maskUrl } from "../../receipts/masking.ts";
import { Choices, PostForm, Submit } from "../../ui/form.tsx";
import { actionPath, Layout, listPath, render } from "../../ui/layout.tsx";
import {
  ago,
  Dot,
  Facts,
  LinkButton,
  Name,
  NextPage,
  Notice,
  PageHead,
  sentence,
  StatusDot,
  time,
  untrusted,
} from "../../ui/parts.tsx";
import type { FormState } from "../frame/forms.ts";
import { chosenIn } from "../frame/schema-form.tsx";
import { agoOr, List, None, pauseOrResume, RowAction, RowLink, RowMenu } from "../frame/list.tsx";
import { type Choice, counted, number, type PageUser, roleLabel, scopeLabel } from "../../ui/text.ts";
import { visibleText } from "../../receipts/visible-text.ts";

export const KEYS_LINK = { href: "/keys", name: "All keys" } as const;

async function keysPage({ keyService, pauseService, oauth, clock }: PageDeps, user: Person, search: string) {
  const now = clock.now();
  const query = new URLSearchParams(search);
  // Pages begin at 1. Anything else than a number means 1.
  const at = /^[1-9]\d{0,3}$/.test(query.get("page") ?? "") ? Number(query.get("page")) : 1;
  const [keys, former, pauses, connected] = await Promise.all([
    keyService.listWithUse(user.caller),
    // Live keys of people who may no longer manage the account.
    keyService.ofFormer(user.caller),
    pauseService.list(user.caller),
    oauth?.connectedKeys(user.caller) ?? new Set<string>(),
  ]);
  const shown = keys.slice((at - 1) * KEYS_SHOWN_MAX, at * KEYS_SHOWN_MAX);
  const isMore = keys.length > at * KEYS_SHOWN_MAX && shown.length > 0;
  const live = shown.filter(({ revokedAt }) => revokedAt === null);
  const over = shown.filter(({ revokedAt }) => revokedAt !== null);
  // The key revoked just now, and its unfinished actions.
  const revoked = keys.find(({ id, revokedAt }) => id === query.get("revoked") && revokedAt !== null);
  const left = revoked === undefined ? null : await keyService.unfinished(user.caller, revoked.id);
  const paused = new Map(pauses.flatMap((pause) => (pause.kind === "key" ? [[pause.subject, pause]] : [])));
  const nameCell = (key: KeyView) => (
    <>
      <KeyWithEnd {...key} /> {paused.has(key.id) ? <Dot tone="wait">Paused</Dot> : null}
    </>
  );
  return render(
    <Layout title="Keys" nav="Keys" user={user} width="wide" now={now}>
      <PageHead
        title="Keys"
        intro="Programs and agents call the API with a key. Its role sets what it can do."
        actions={
          <LinkButton href="/keys/new" look="main">
            Create a key
          </LinkButton>
        }
      />
      {revoked === undefined || left === null ? null : (
        <Notice tone="good">
          <Name text={revoked.name} /> is revoked and no longer works.
          {left.unfinishedActions === 0 ? null : ` ${leftText(left)} Approvers see that the key was revoked.`}
        </Notice>
      )}
      <FormerKeys user={user} keys={former} />
      {live.length === 0 ? null : (
        <List
          title="Keys"
          rows={live}
          columns={[
            [
              "Key",
              (key) => (
                <>
                  {nameCell(key)}
                  {isOver(key, now) ? <Dot tone="bad">Expired</Dot> : null}
                  <span class="says">
                    {key.lastUsedAt === null ? "Never used" : sentence`Used ${ago(key.lastUsedAt, now)}`}
                    {/* A connection of a client. */}
                    {connected.has(key.id) ? " · connected by " : " · created by "}
                    {makerName(key.createdBy)}
                  </span>
                </>
              ),
              "main",
            ],
            ["Role", roleCell],
            ["Hold", ({ hold }) => (hold === "none" ? <None>None</None> : HOLD_WORDS[hold])],
            ["Limits", (key) => limitsCell(key, now)],
            ["Last call", (key) => lastCall(key, now)],
            [
              "24 hours",
              (key) => (
                <RowLink
                  href={listPath({ created_by: key.id })}
                  of={`actions of ${nameWithEnd(key)}`}
                  name={`${number(key.actionsLastDay)}${key.actionsLastDay >= KEY_ACTIONS_COUNTED_MAX ? "+" : ""}`}
                />
              ),
              "number",
            ],
          ]}
          actions={(key) => {
            const [id, of] = [key.id, nameWithEnd(key)];
            return (
              <RowMenu
                of={of}
                items={[
                  <RowLink href={`/keys/new?replaces=${id}`} of={of} name="Rotate" />,
                  <RowLink href={listPath({ created_by: id })} of={of} name="Show actions" />,
                  pauseOrResume(user, paused.get(id), `?key=${id}`, of),
                ]}
                ends={<RowLink href={`/keys/${id}/revoke`} of={of} name="Revoke" />}
              />
            );
          }}
        />
      )}
      {over.length === 0 ? null : (
        <details class="uses" open={live.length === 0}>
          <summary>{counted(over.length, "revoked key")}</summary>
          <List
            title="Revoked keys"
            rows={over}
            columns={[
              ["Key", nameCell, "main"],
              ["Role", ({ role }) => roleLabel(role)],
              ["Revoked", ({ revokedAt, revokedBy }) => sentence`${agoOr(revokedAt, now)} by ${makerName(revokedBy)}`],
              ["Last call", (key) => lastCall(key, now)],
            ]}
            actions={(key) => (
              <RowMenu
                of={nameWithEnd(key)}
                items={[
                  <RowLink href={`/keys/new?replaces=${key.id}`} of={nameWithEnd(key)} name="Replace" />,
                  <RowLink href={listPath({ created_by: key.id })} of={nameWithEnd(key)} name="Show actions" />,
                ]}
              />
            )}
          />
        </details>
      )}
      <NextPage href={isMore ? `/keys?page=${at + 1}` : null} name="Next page" />
    </Layout>,
  );
}

function roleCell({ role, scope }: KeyView) {
  const wide = scopeLabel(role, scope);
  return (
    <>
      {roleLabel(role)}
      {wide === null ? null : <span class="says nowrap">{wide}</span>}
    </>
  );
}

const HOLD_WORDS = { writes: "Writes", all: "Every call" } as const satisfies Record<Exclude<Hold, "none">, string>;

function lastCall({ lastCall: call }: ListedKeyView, now: Date) {
  if (call === null) return <None>No action yet</None>;
  const { id, method, url, status, responseCode, createdAt } = call;
  const shown = maskUrl(url, "decider").replace(/^https?:\/\//, "");
  return (
    <a class="last-call" href={actionPath(id)}>
      <span class="clipped">
        <code>{method}</code> {untrusted(shown)}
      </span>
      <span class="says">
        <StatusDot status={status} code={isTerminal(status) ? responseCode : null} /> · {ago(createdAt, now)}
      </span>
    </a>
  );
}

function isOver({ expiresAt }: KeyView, now: Date): boolean {
  return expiresAt !== null && now >= expiresAt;
}

/** A key's limits, each in a few words. Limits that refuse it now are red. */
export function limitTexts(key: KeyView & Partial<ListedKeyView>, now: Date): readonly Child[] {
  const { hosts, methods, dailyActions, actionsToday, expiresAt } = key;
  const limits: Child[] = [];
  if (hosts !== null) {
    const more = hosts.length > HOSTS_LISTED ? ` +${hosts.length - HOSTS_LISTED}` : "";
    limits.push(<code title={hosts.join(", ")}>{`${hosts.slice(0, HOSTS_LISTED).join(", ")}${more}`}</code>);
  }
  if (methods !== null) limits.push(methods.join(", "));
  if (dailyActions !== null) {
    const isReached = actionsToday !== undefined && actionsToday >= dailyActions;
    const used = actionsToday === undefined ? "" : `${number(actionsToday)} of `;
    limits.push(<span class={isReached ? "says-bad" : undefined}>{`${used}${number(dailyActions)} a day`}</span>);
  }
  if (expiresAt !== null) {
    const end = time(expiresAt);
    limits.push(isOver(key, now) ? <span class="says-bad">ended {end}</span> : sentence`until ${end}`);
  }
  return limits;
}

const HOSTS_LISTED = 2;

function limitsCell(key: ListedKeyView, now: Date) {
  const limits = limitTexts(key, now);
  return limits.length === 0 ? <None>None</None> : limits.map((limit) => <div>{limit}</div>);
}

/** Tells keys with one name apart, such as one and its replacement. */
function nameWithEnd({ name, last4 }: KeyView): string {
  return `${name} …${last4}`;
}

function KeyWithEnd({ name, last4 }: KeyView) {
  return (
    <>
      <Name text={name} /> <code class="none nowrap">…{last4}</code>
    </>
  );
}

function makerName(actor: KeyView["createdBy"]): Child {
  return actor === null ? "unknown" : <Name text={describeActor(actor).name} />;
}

/** Keys that former members may still know, each with a button to revoke it. */
export function FormerKeys({ user, keys }: { readonly user: PageUser; readonly keys: readonly KeyView[] }) {
  if (keys.length === 0) return null;
  return (
    <List
      id="former"
      title="Keys to check"
      intro="Their creators can no longer manage the account: people who left or have another role, or owner keys that were revoked or have expired. They may still know these keys."
      rows={keys}
      columns={[
        ["Key", (key) => <KeyWithEnd {...key} />, "main"],
        ["Role", ({ role }) => roleLabel(role)],
        ["Created by", ({ createdBy }) => makerName(createdBy)],
      ]}
      actions={(key) => <RowAction user={user} path={`/keys/${key.id}/revoke`} of={nameWithEnd(key)} name="Revoke" />}
    />
  );
}

/** "3 of its actions have not ended, 1 of them awaits approval." */
type Unfinished = Awaited<ReturnType<KeyService["unfinished"]>>;

function leftText({ unfinishedActions, heldActions }: Unfinished): string {
  const more = unfinishedActions >= UNFINISHED_COUNTED_MAX ? "+" : "";
  const held =
    heldActions === 0 ? "" : `, ${number(heldActions)} of them ${heldActions === 1 ? "awaits" : "await"} approval`;
  const ended = unfinishedActions === 1 ? "action has" : "actions have";
  return `${number(unfinishedActions)}${more} ${ended} not ended${held}.`;
}

/** A key as an option of a list. */
export function keyLabel({ name, last4, revokedAt }: KeyView): string {
  return `${name} (…${last4})${revokedAt === null ? "" : ", revoked"}`;
}

/** Working keys and those that the form names. Without its last key, the rule would apply to all keys. */
export function keyBoxes(
  keys: readonly KeyView[],
  typed: FormState,
): readonly (readonly [id: string, label: string])[] {
  const chosen = chosenIn(typed.values, "keys");
  const shown = keys.filter(({ id, revokedAt }) => revokedAt === null || chosen.includes(id));
  const unknown = chosen.filter((id) => !keys.some((key) => key.id === id));
  return [...shown.map((key) => [key.id, keyLabel(key)] as const), ...unknown.map((id) => [id, id] as const)];
}

/** The default comes first. It leaves all actions alone, for rotating a key. */
const UNFINISHED = [
  {
    value: "keep",
    label: "Continue",
    hint: "They are sent when they are due. Those awaiting approval still need a decision.",
  },
  {
    value: "pause",
    label: "Pause",
    hint: "They are not sent until you resume. Those awaiting approval can still be decided.",
  },
  { value: "cancel", label: "Cancel", hint: "They are not sent. Those awaiting approval are cancelled too." },
] as const satisfies readonly (Choice & { readonly value: UnfinishedOnRevoke })[];

function revokeKeyPage(user: PageUser, key: KeyView, left: Unfinished, now: Date): string {
  const { id, name, role, last4, createdAt, createdBy, lastUsedAt } = key;
  return render(
    <Layout title={`Revoke ${visibleText(name)}?`} nav="Keys" user={user}>
      <PageHead title="Revoke this key?" back={KEYS_LINK}>
        <p>Requests with this key are refused immediately. You can’t undo this.</p>
      </PageHead>
      <PostForm user={user} action={`/keys/${id}/revoke`} class="card">
        <Facts
          rows={[
            ["Name", <Name text={name} />],
            ["Role", roleLabel(role)],
            ["Ends in", <code>{last4}</code>],
            ["Created", time(createdAt)],
            ["Created by", makerName(createdBy)],
            ["Last used", lastUsedAt === null ? "Never" : timeAgo(now.getTime() - lastUsedAt.getTime())],
          ]}
        />
        <Choices
          name="unfinished"
          legend="Unfinished actions of this key"
          hint={left.unfinishedActions === 0 ? "None." : leftText(left)}
          choices={UNFINISHED}
          chosen="keep"
        />
        <Submit look="danger" cancel="/keys">
          Revoke key
        </Submit>
      </PostForm>
    </Layout>,
  );
}

export function keyListPages(deps: PageDeps) {
  const { keyService, answer, clock } = deps;
  const revoke = answer<ById>(async ({ person, params: { id }, form }) => {
    const said = form.get("unfinished") ?? "keep";
    const unfinished = UNFINISHED.find(({ value }) => value === said)?.value;
    if (unfinished === undefined)
      throw new DomainError(
        "validation_error",
        "Choose what happens to its unfinished actions: keep, pause or cancel.",
      );
    await keyService.revoke(person.caller, id, unfinished);
    return `/keys?revoked=${id}`;
  });
  const hooks = { params: KeyParams };
  return personPages(deps)
    .get("/keys", ({ context, person }) => keysPage(deps, person, context.search))
    .get(
      "/keys/:id/revoke",
      async ({ person, params: { id } }) => {
        const key = (await keyService.list(person.caller)).find((one) => one.id === id);
        if (key === undefined) throw notFound("key");
        if (key.revokedAt !== null) return seeOther("own", `/keys?revoked=${id}`);
        return revokeKeyPage(person, key, await keyService.unfinished(person.caller, id), clock.now());
      },
      hooks,
    )
    .post("/keys/:id/revoke", revoke, hooks);
}
