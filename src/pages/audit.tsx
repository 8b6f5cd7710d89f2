/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { describeActor } from "../core/roles.ts";
import type { AuditDetail, AuditKind, AuditRow } from "../core/audit.ts";
import { ALL_HOSTS } from "../core/host-settings.ts";
import { bulkPath } from "./bulk.tsx";
import { EmptyState, FilterMenu } from "../ui/controls.tsx";
import { actionPath, queryText, render } from "../ui/layout.tsx";
import {
  Facts,
  Name,
  isSameDay,
  NextPage,
  sentence,
  listedTime,
  time,
  untrustedLines,
  untrusted,
} from "../ui/parts.tsx";
import { SETTINGS_PATHS, SettingsPage } from "./settings-frame.tsx";
import { counted, duration, inWords, networkText, number, type PageUser } from "../ui/text.ts";
import { AuditQuery, checkAudit } from "../audit/audit.ts";
import { compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import { AUDIT_MENU_MAX } from "../core/limits.ts";
import { readQuery, withoutEmpty } from "../http/request.ts";
import type { Person } from "../http/session.ts";
import { personPages, type PageDeps } from "./page-deps.ts";

export const AUDIT_PATH = SETTINGS_PATHS.audit;

interface AuditPageProps {
  readonly user: PageUser;
  /** Newest first. */
  readonly entries: readonly AuditRow[];
  /** The kinds shown; empty: all. */
  readonly kinds: readonly AuditKind[];
  /** The actor whose entries are shown; null: everybody's. */
  readonly actor: string | null;
  /** An actor for each person and key that can be chosen. */
  readonly actors: readonly string[];
  readonly names: AuditNames;
  /** The path of this page with other filters. */
  readonly pathOf: (kinds: readonly AuditKind[], actor: string | null) => string;
  /** The path of the next page; null if there is none. */
  readonly older: string | null;
  readonly now: Date;
}

/** Names for the ids in entries. */
interface AuditNames {
  readonly keys: ReadonlyMap<string, string>;
  readonly channels: ReadonlyMap<string, string>;
}

export function auditPage(props: AuditPageProps): string {
  const { user, entries, kinds, actor, older, now } = props;
  const isFiltered = kinds.length > 0 || actor !== null;
  return render(
    <SettingsPage
      user={user}
      section="Audit log"
      intro={
        <>
          Who did what to this account. Entries are never changed. <a href="/docs/security">What the log records</a>
        </>
      }
      actions={
        <>
          <ActorMenu {...props} />
          <KindMenu {...props} />
        </>
      }
      now={now}
    >
      {entries.length > 0 ? (
        <ol class="audit" data-days="">
          {entries.map((entry, at) => (
            <>
              {isSameDay(entry.at, entries[at - 1]?.at ?? now) ? null : (
                <li class="day">{listedTime(entry.at, "weekday")}</li>
              )}
              <Entry entry={entry} {...props} />
            </>
          ))}
        </ol>
      ) : (
        <EmptyState icon="clock" title={older === null ? "No entries match" : "No match so far"}>
          <p>
            {older === null ? null : "None of these entries match; older ones may. "}
            {isFiltered ? <a href={AUDIT_PATH}>Show all events</a> : null}
          </p>
        </EmptyState>
      )}
      <NextPage href={older} name={entries.length === 0 ? "Look further back" : "Older"} />
    </SettingsPage>,
  );
}

function Entry({ entry, user, kinds, pathOf, names }: AuditPageProps & { readonly entry: AuditRow }) {
  const { seq, at, actor, kind, subject, client, detail } = entry;
  const { reason, via } = detail;
  const way = typeof via === "string" ? (WAYS[via] ?? "") : "";
  return (
    <li>
      {listedTime(at, "minute")}
      <div>
        <p>
          <a href={pathOf(kinds, actor)} title="Show only their entries">
            <Who actor={actor} user={user} />
          </a>{" "}
          {PHRASES[kind](entry, { names, user })}.
        </p>
        {typeof reason === "string" ? <q class="reason">{untrustedLines(reason)}</q> : null}
        <details>
          <summary>
            {[way, client === "" ? "" : `from ${networkText(client)}`].filter((one) => one !== "").join(", ") ||
              "Details"}
          </summary>
          <Facts
            rows={[
              ["Entry", <code>{seq}</code>],
              ["Time", time(at)],
              ["Kind", <code>{kind}</code>],
              ["Actor", untrusted(actor)],
              ["Subject", subject === "" ? null : untrusted(subject)],
              ["Address", client === "" ? null : untrusted(networkText(client))],
              ...Object.entries(detail).map(
                ([name, value]) => [inWords(name), value === null ? null : untrusted(String(value))] as const,
              ),
            ]}
          />
        </details>
      </div>
    </li>
  );
}

/** Names the actor, at the beginning of a sentence or within it. */
function Who(props: { readonly actor: string; readonly user: PageUser; readonly isWithin?: boolean }) {
  const { actor, user, isWithin = false } = props;
  if (actor === "anonymous") return <b>Somebody</b>;
  const { name } = describeActor(actor);
  if (/^(key|mcp):/.test(actor)) return sentence`${isWithin ? "the key" : "Key"} ${<Name text={name} />}`;
  return <Address email={name} user={user} />;
}

/** An address without the domain if it is the reader's. Others keep theirs, so no two look alike. */
function Address({ email, user }: { readonly email: string; readonly user: PageUser }) {
  const domain = user.email.slice(user.email.lastIndexOf("@"));
  const isOwn = email.length > domain.length && email.endsWith(domain);
  return <Name text={isOwn ? email.slice(0, -domain.length) : email} />;
}

function ActorMenu({ user, actor, actors, kinds, pathOf }: AuditPageProps) {
  const actorName = (one: string) => (
    <span>{one === "anonymous" ? "Failed logins" : <Who actor={one} user={user} />}</span>
  );
  const chosen = actor === null ? null : (actors.find((one) => actorsLike(one).includes(actor)) ?? actor);
  // Keeps the chosen actor, even if they have left or the key is revoked.
  const all = chosen === null || actors.includes(chosen) ? actors : [chosen, ...actors];
  return (
    <FilterMenu
      isAtEnd
      label={actor === null ? "Everybody" : actorName(actor)}
      all="Everybody"
      options={all.map((one) => [one, actorName(one)])}
      chosen={chosen}
      path={(one) => pathOf(kinds, one)}
      note="For anyone else, select their name in the log."
    />
  );
}

/** All actors of the same person or key: people act on pages and by mail links, keys over the API and MCP. */
export function actorsLike(actor: string): readonly string[] {
  const nameAt = actor.indexOf(":") + 1;
  const [kind, name] = [actor.slice(0, nameAt), actor.slice(nameAt)];
  const alike = [
    ["user:", "email:"],
    ["key:", "mcp:"],
  ].find((kinds) => kinds.includes(kind));
  return alike === undefined ? [actor] : alike.map((one) => one + name);
}

function KindMenu({ kinds, actor, pathOf }: AuditPageProps) {
  const options = Object.entries(GROUPS).flatMap(([title, group]) => {
    // Safe: the members of a group are kinds.
    const some = Object.keys(group) as AuditKind[];
    const each = some.map((kind) => ({ kinds: [kind], label: kindLabel(kind), name: kindLabel(kind) }));
    return [{ kinds: some, label: title, name: <b>{title}</b> }, ...(each.length === 1 ? [] : each)];
  });
  const isChosen = (some: readonly AuditKind[]) =>
    some.length === kinds.length && some.every((one) => kinds.includes(one));
  const found = options.find((one) => isChosen(one.kinds));
  return (
    <FilterMenu
      isAtEnd
      label={kinds.length === 0 ? "All events" : (found?.label ?? counted(kinds.length, "kind"))}
      all="All events"
      options={options.map((one) => [one.kinds.join(), one.name])}
      chosen={kinds.length === 0 ? null : (found?.kinds.join() ?? "")}
      path={(value) => pathOf(options.find((one) => one.kinds.join() === value)?.kinds ?? [], actor)}
    />
  );
}

/** Labels of kinds whose names don't say enough. */
const KIND_LABELS: Readonly<Partial<Record<AuditKind, string>>> = {
  signed_in: "Logged in",
  signed_out: "Logged out",
  sign_in_failed: "Login failed",
  sign_in_throttled: "Logins slowed down",
  oauth_client_added: "OAuth client added",
  oauth_client_changed: "OAuth client changed",
  oauth_client_removed: "OAuth client deleted",
};

function kindLabel(kind: AuditKind): string {
  return KIND_LABELS[kind] ?? inWords(kind);
}

/** How an actor acted. */
const WAYS: Readonly<Record<string, string>> = {
  api: "over the API",
  page: "on a page",
  mail: "by the link in a mail",
  mcp: "over MCP",
  elicitation: "asked by their MCP client",
  system: "by itself",
};

interface PhraseProps {
  readonly names: AuditNames;
  readonly user: PageUser;
}

/** What somebody did, in words that follow their name. Entries of older versions may lack a detail. */
type Phrase = (entry: AuditRow, props: PhraseProps) => Child;

/** The kinds by subject, since a menu of all of them would be too long. */
const GROUPS = {
  Decisions: {
    approved: (entry) => sentence`approved ${callOf(entry)}`,
    rejected: (entry) => sentence`rejected ${callOf(entry)}`,
    cancelled: (entry) => sentence`cancelled ${callOf(entry)}`,
    retried: (entry) => sentence`retried ${callOf(entry)}`,
    sent_now: (entry) => sentence`sent ${callOf(entry)} ahead of its time`,
    bulk_started: ({ subject, detail: { operation, matching } }) => {
      const actions = counted(typeof matching === "number" ? matching : 0, "action");
      return sentence`started to ${text(operation)} ${<a href={bulkPath(subject)}>{actions}</a>}`;
    },
    bulk_stopped: ({ subject, detail: { operation } }) =>
      sentence`stopped ${<a href={bulkPath(subject)}>a bulk {text(operation)}</a>}`,
  },
  "Hidden values": {
    revealed: ({ subject, detail: { what } }) =>
      what === "signing_secret"
        ? sentence`viewed the signing secret of ${untrusted(subject)}`
        : sentence`viewed the hidden values of ${<a href={actionPath(subject)}>an action</a>}`,
  },
  Pauses: {
    paused: (entry, props) => sentence`paused ${pausedText(entry, props)}`,
    resumed: (entry, props) => sentence`resumed ${pausedText(entry, props)}`,
  },
  Keys: {
    key_created: ({ detail: { name, role, hold, replaces } }, { names }) => {
      const held =
        hold === "none" || hold === undefined ? null : ` that holds ${hold === "all" ? "everything" : text(hold)}`;
      const instead =
        typeof replaces === "string" ? sentence` in place of ${<KeyOf id={replaces} names={names} />}` : null;
      return sentence`created the ${text(role)} key ${named(name)}${held}${instead}`;
    },
    key_revoked: ({ subject, detail: { unfinished } }, { names }) => {
      const done = { pause: " and paused its actions", cancel: " and cancelled its actions" }[text(unfinished)];
      return sentence`revoked the key ${<KeyOf id={subject} names={names} />}${done}`;
    },
  },
  People: {
    member_invited: ({ subject, detail: { role } }, { user }) =>
      sentence`invited ${<Address email={subject} user={user} />} as ${text(role)}`,
    invitation_withdrawn: ({ subject }, { user }) =>
      sentence`withdrew the invitation of ${<Address email={subject} user={user} />}`,
    member_joined: ({ detail: { role, invited_by: by } }, { user }) => {
      const inviter = typeof by === "string" ? sentence`, invited by ${<Who actor={by} user={user} isWithin />}` : null;
      return sentence`joined as ${text(role)}${inviter}`;
    },
    member_role_changed: ({ subject, detail: { from, to } }, { user }) =>
      sentence`changed the role of ${<Address email={subject} user={user} />} from ${text(from)} to ${text(to)}`,
    member_removed: ({ subject }, { user }) => sentence`removed ${<Address email={subject} user={user} />}`,
    member_left: () => "left the account",
    account_renamed: ({ detail: { name } }) =>
      typeof name === "string" ? sentence`named the account ${named(name)}` : "took the account’s name away",
  },
  Logins: {
    signed_up: ({ detail: { by } }) => `signed up${by === "link" ? " with a link" : ""}`,
    signed_in: ({ detail: { by } }) => `logged in${by === "oidc" ? " with the identity provider" : ""}`,
    sign_in_failed: ({ subject, detail }, { user }) =>
      sentence`failed to log in as ${<Address email={subject} user={user} />}${timesText(detail["count"])}`,
    sign_in_throttled: ({ subject, detail }, { user }) =>
      sentence`failed to log in as ${<Address email={subject} user={user} />} too often${timesText(detail["count"])}`,
    signed_out: () => "logged out",
    password_changed: ({ detail: { by } }) => `changed their password${by === "link" ? " with a link" : ""}`,
    password_link_sent: () => "asked for a link that sets a password",
    sessions_ended: ({ detail: { which } }) =>
      which === "others" ? "logged out their other sessions" : "ended one of their sessions",
    identity_linked: ({ detail: { issuer, password_removed: isRemoved } }) => {
      const removed = isRemoved === true ? ", and their password was removed" : null;
      return sentence`linked their login to ${untrusted(text(issuer))}${removed}`;
    },
  },
  Delivery: {
    rules_changed: ({ detail: { change, name, changed } }) => {
      if (change === "reordered") return "changed the order of the rules";
      if (change === "replaced") return "replaced all rules";
      if (name === undefined) return "changed the rules";
      const members = change === "changed" ? `: ${text(changed).replaceAll("_", " ")}` : null;
      return sentence`${text(change)} the rule ${named(name)}${members}`;
    },
    refused_by_rule: ({ detail: { method, host, name } }) =>
      sentence`was refused ${text(method)} ${named(host)} by the rule ${named(name)}`,
    beyond_rule: ({ detail: { method, host, name } }) =>
      sentence`went beyond the limit of the rule ${named(name)} with ${text(method)} ${named(host)}`,
    grant_used: ({ detail: { method, host, used, calls } }) => {
      const uses =
        typeof used === "number" && typeof calls === "number" ? `, ${number(used)} of ${number(calls)}` : null;
      return sentence`was allowed ${text(method)} ${named(host)} by a grant${uses}`;
    },
    grant_ended: () => "ended a grant",
    credential_added: ({ detail: { name } }) => sentence`added the credential ${named(name)}`,
    credential_changed: ({ detail: { name, changed } }) =>
      sentence`changed the credential ${named(name)}: ${text(changed)}`,
    credential_removed: ({ detail: { name } }) => sentence`deleted the credential ${named(name)}`,
    credential_used: ({ detail: { name, host } }) => sentence`sent the credential ${named(name)} to ${named(host)}`,
    credential_echoed: ({ detail: { name, host } }) =>
      sentence`masked the credential ${named(name)} in an answer of ${named(host)}, which had sent it back`,
    credential_tested: ({ detail: { name, host } }) =>
      sentence`tried the credential ${named(name)} with a GET to ${named(host)}`,
    oauth_client_added: ({ detail: { name } }) => sentence`added the OAuth client ${named(name)}`,
    oauth_client_changed: ({ detail: { name } }) => sentence`replaced the secret of the OAuth client ${named(name)}`,
    oauth_client_removed: ({ detail: { name } }) => sentence`deleted the OAuth client ${named(name)}`,
    credential_requested: ({ detail: { host } }) => sentence`asked for a credential for ${named(host)}`,
    credential_request_granted: ({ detail: { name, host } }) =>
      sentence`granted the request for a credential for ${named(host)} with ${named(name)}`,
    credential_request_declined: ({ detail: { host } }) =>
      sentence`declined the request for a credential for ${named(host)}`,
    host_settings_changed: ({ subject, detail }) => {
      const host = subject === ALL_HOSTS ? "all hosts" : <Name text={subject} />;
      return detail["change"] === "removed"
        ? sentence`removed the settings of ${host}`
        : sentence`set ${host} to ${settingsText(detail)}`;
    },
    callback_hosts_changed: ({ subject, detail: { change } }) =>
      change === "removed"
        ? sentence`removed ${<Name text={subject} />} from the callback hosts`
        : sentence`added ${<Name text={subject} />} to the callback hosts`,
    callback_tested: ({ subject, detail: { delivered, verifies } }) => {
      const failed = delivered === false ? ", which failed" : "";
      const does = verifies === true ? "verifies" : "does not verify";
      const verified = typeof verifies === "boolean" ? `, which ${does} signatures` : "";
      return sentence`tested the receiver of callbacks at ${<Name text={subject} />}${failed}${verified}`;
    },
    signing_secret_rotated: ({ subject }) =>
      subject === "" ? "rotated all signing secrets" : sentence`rotated the signing secret of ${untrusted(subject)}`,
  },
  Channels: {
    channel_added: ({ detail: { name, kind } }) =>
      sentence`added the ${CHANNEL_WORDS[text(kind)] ?? text(kind)} channel ${named(name)}`,
    channel_changed: (entry, props) =>
      sentence`changed ${channelText(entry, props)}: ${text(entry.detail["changed"]).replaceAll("_", " ")}`,
    channel_removed: () => "removed a channel",
    channel_tested: (entry, props) =>
      sentence`tested ${channelText(entry, props)}${entry.detail["delivered"] === false ? ", which failed" : null}`,
  },
  "Accounts of the service": {
    signups_closed: () => "closed sign-ups with the first key that has a hold",
    account_allowed: () => "allowed another account of this service",
  },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<AuditKind, Phrase>>>>>;

const PHRASES: Readonly<Record<AuditKind, Phrase>> = {
  ...GROUPS.Decisions,
  ...GROUPS["Hidden values"],
  ...GROUPS.Pauses,
  ...GROUPS.Keys,
  ...GROUPS.People,
  ...GROUPS.Logins,
  ...GROUPS.Delivery,
  ...GROUPS.Channels,
  ...GROUPS["Accounts of the service"],
};

const CHANNEL_WORDS: Readonly<Record<string, string>> = { mail: "email", slack: "Slack" };

/** The text of a detail; empty if an older version did not write it. */
function text(value: AuditDetail[string] | undefined): string {
  return typeof value === "string" ? value : "";
}

function named(value: AuditDetail[string] | undefined) {
  return <Name text={text(value)} />;
}

function timesText(count: AuditDetail[string] | undefined): string | null {
  return typeof count === "number" && count > 1 ? `, ${number(count)} times` : null;
}

function callOf({ subject, detail: { method, host } }: AuditRow) {
  const call = method === undefined ? "an action" : sentence`${text(method)} ${untrusted(text(host))}`;
  return <a href={actionPath(subject)}>{call}</a>;
}

function KeyOf({ id, names }: { readonly id: string; readonly names: AuditNames }) {
  const name = names.keys.get(id);
  return name === undefined ? <code>{id}</code> : <Name text={name} />;
}

function pausedText({ detail: { of, host, key_id: keyId } }: AuditRow, { names }: PhraseProps): Child {
  if (of === "host") return sentence`calls to ${<Name text={text(host)} />}`;
  return of === "key" ? sentence`the key ${<KeyOf id={text(keyId)} names={names} />}` : "everything";
}

/** A channel by its current name. */
function channelText({ subject }: AuditRow, { names }: PhraseProps): Child {
  const name = names.channels.get(subject);
  return name === undefined ? "a channel that was removed later" : sentence`the channel ${<Name text={name} />}`;
}

/** The settings set for a host, in the API's order. Shows a member without words of its own by its name. */
function settingsText({ via: _via, change: _change, ...set }: AuditDetail): string {
  const rules = Object.entries(set).map(([name, value]) => SETTING_WORDS[name]?.(value) ?? `${name}: ${String(value)}`);
  return rules.length === 0 ? "what holds for all" : rules.join(", ");
}

const SETTING_WORDS: Readonly<Record<string, (value: AuditDetail[string]) => string>> = {
  timeout_ms: (ms) => `a timeout of ${duration(Number(ms))}`,
  base_ms: (ms) => `a first delay of ${duration(Number(ms))}`,
  cap_ms: (ms) => `a longest delay of ${duration(Number(ms))}`,
  give_up_on: (statuses) => `giving up on ${String(statuses) || "nothing"}`,
  max_per_second: (calls) => `${String(calls)} calls a second`,
  max_concurrent: (calls) => `${counted(Number(calls), "call")} at a time`,
  default_credential: (name) => `calls with ${String(name)} by default`,
};

const PAGE_QUERY = compileQuery(AuditQuery);

/** The audit log for people, filtered by the parameters of /v1/audit. Here an actor includes all their names in the log. */
export function auditPages(deps: PageDeps) {
  return personPages(deps).get(AUDIT_PATH, async ({ context, person }) => {
    const query = readQuery(withoutEmpty(context.search), PAGE_QUERY);
    const asked = checkAudit(query);
    const [actor = null] = asked.actors;
    const wanted = { ...asked, actors: actor === null ? [] : actorsLike(actor) };
    const { rows, before } = await deps.auditService.list(person.caller, wanted);
    const { actors, names } = await namesOf(deps, person);
    const pathOf = (kinds: readonly AuditKind[], one: string | null) =>
      AUDIT_PATH + queryText({ ...query, kind: kinds, actor: one, cursor: null });
    const older = before === null ? null : { ...query, cursor: encodeCursor(String(before)) };
    return auditPage({
      user: person,
      entries: rows,
      kinds: asked.kinds,
      actor,
      actors,
      names,
      pathOf,
      older: older === null ? null : AUDIT_PATH + queryText(older),
      now: deps.clock.now(),
    });
  });
}

/** The actors that can be chosen, people first, and the names of keys and channels. */
async function namesOf({ teamService, keyService, channelService }: PageDeps, { caller }: Person) {
  const [people, keys, channels] = await Promise.all([
    teamService.list(caller),
    keyService.list(caller),
    channelService.list(caller),
  ]);
  const names: AuditNames = {
    keys: new Map(keys.map(({ id, name }) => [id, name])),
    channels: new Map(channels.map(({ id, name }) => [id, name])),
  };
  const live = keys.filter(({ revokedAt }) => revokedAt === null);
  const all = [...people.map(({ email }) => `user:${email}`), ...live.map(({ name }) => `key:${name}`)];
  return { names, actors: [...new Set(all)].slice(0, AUDIT_MENU_MAX).concat("system", "anonymous") };
}
