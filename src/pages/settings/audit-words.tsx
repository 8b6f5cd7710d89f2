/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { AuditDetail, AuditKind, AuditRow } from "../../core/audit.ts";
import { ALL_HOSTS } from "../../core/host-settings.ts";
import { describeActor } from "../../core/roles.ts";
import { actionPath, bulkPath } from "../../ui/layout.tsx";
import { Name, sentence, untrusted } from "../../ui/parts.tsx";
import { counted, duration, inWords, number, type PageUser } from "../../ui/text.ts";

/** What somebody did, in words that follow their name. Entries of older versions may lack a detail. */
type Phrase = (entry: AuditRow, names: AuditNames) => Child;

/** The kinds by subject, as the menu has them. */
export const PHRASE_GROUPS = {
  Decisions: {
    approved: (entry) => sentence`approved ${callWords(entry)}`,
    rejected: (entry) => sentence`rejected ${callWords(entry)}`,
    cancelled: (entry) => sentence`cancelled ${callWords(entry)}`,
    retried: (entry) => sentence`retried ${callWords(entry)}`,
    sent_now: (entry) => sentence`sent ${callWords(entry)} ahead of its time`,
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
    paused: (entry, names) => sentence`paused ${pausedText(entry, names)}`,
    resumed: (entry, names) => sentence`resumed ${pausedText(entry, names)}`,
  },
  Keys: {
    key_created: ({ detail: { name, role, hold, replaces } }, names) => {
      const held =
        hold === "none" || hold === undefined ? null : ` that holds ${hold === "all" ? "everything" : text(hold)}`;
      const instead = typeof replaces === "string" ? sentence` in place of ${names.key(replaces)}` : null;
      return sentence`created the ${text(role)} key ${named(name)}${held}${instead}`;
    },
    key_revoked: ({ subject, detail: { unfinished } }, names) => {
      const done = { pause: " and paused its actions", cancel: " and cancelled its actions" }[text(unfinished)];
      return sentence`revoked the key ${names.key(subject)}${done}`;
    },
  },
  People: {
    member_invited: ({ subject, detail: { role } }, { address }) =>
      sentence`invited ${address(subject)} as ${text(role)}`,
    invitation_withdrawn: ({ subject }, { address }) => sentence`withdrew the invitation of ${address(subject)}`,
    member_joined: ({ detail: { role, invited_by: by } }, { actor }) => {
      const inviter = typeof by === "string" ? sentence`, invited by ${actor(by, "within")}` : null;
      return sentence`joined as ${text(role)}${inviter}`;
    },
    member_role_changed: ({ subject, detail: { from, to } }, { address }) =>
      sentence`changed the role of ${address(subject)} from ${text(from)} to ${text(to)}`,
    member_removed: ({ subject }, { address }) => sentence`removed ${address(subject)}`,
    member_left: () => "left the account",
    account_renamed: ({ detail: { name } }) =>
      typeof name === "string" ? sentence`named the account ${named(name)}` : "removed the account’s name",
  },
  Logins: {
    signed_up: ({ detail: { by } }) => `signed up${by === "link" ? " with a link" : ""}`,
    signed_in: ({ detail: { by } }) => `logged in${by === "oidc" ? " with the identity provider" : ""}`,
    sign_in_failed: ({ subject, detail }, { address }) =>
      sentence`failed to log in as ${address(subject)}${timesText(detail["count"])}`,
    sign_in_throttled: ({ subject, detail }, { address }) =>
      sentence`failed to log in as ${address(subject)} too often${timesText(detail["count"])}`,
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
    channel_changed: ({ subject, detail: { changed } }, { channel }) =>
      sentence`changed ${channel(subject)}: ${text(changed).replaceAll("_", " ")}`,
    channel_removed: () => "removed a channel",
    channel_tested: ({ subject, detail: { delivered } }, { channel }) =>
      sentence`tested ${channel(subject)}${delivered === false ? ", which failed" : null}`,
  },
  "Accounts of the service": {
    signups_closed: () => "closed sign-ups with the first key that has a hold",
    account_allowed: () => "allowed another account of this service",
  },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<AuditKind, Phrase>>>>>;

/** What each kind of entry says. */
export const PHRASES: Readonly<Record<AuditKind, Phrase>> = {
  ...PHRASE_GROUPS.Decisions,
  ...PHRASE_GROUPS["Hidden values"],
  ...PHRASE_GROUPS.Pauses,
  ...PHRASE_GROUPS.Keys,
  ...PHRASE_GROUPS.People,
  ...PHRASE_GROUPS.Logins,
  ...PHRASE_GROUPS.Delivery,
  ...PHRASE_GROUPS.Channels,
  ...PHRASE_GROUPS["Accounts of the service"],
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

function callWords({ subject, detail: { method, host } }: AuditRow) {
  const call = method === undefined ? "an action" : sentence`${text(method)} ${untrusted(text(host))}`;
  return <a href={actionPath(subject)}>{call}</a>;
}

function pausedText({ detail: { of, host, key_id: keyId } }: AuditRow, { key }: AuditNames): Child {
  if (of === "host") return sentence`calls to ${<Name text={text(host)} />}`;
  return of === "key" ? sentence`the key ${key(text(keyId))}` : "everything";
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

export function kindLabel(kind: AuditKind): string {
  return KIND_LABELS[kind] ?? inWords(kind);
}

/** How an actor acted. */
export const WAYS: Readonly<Record<string, string>> = {
  api: "over the API",
  page: "on a page",
  mail: "by the link in a mail",
  mcp: "over MCP",
  elicitation: "asked by their MCP client",
  system: "by itself",
};

export type AuditNames = ReturnType<typeof auditNames>;

interface Named {
  readonly id: string;
  readonly name: string;
}

/** How entries name people, keys and channels to this reader. */
export function auditNames({ email: own }: PageUser, keys: readonly Named[], channels: readonly Named[]) {
  const domain = own.slice(own.lastIndexOf("@"));
  const keyNames = new Map(keys.map(({ id, name }) => [id, name]));
  const channelNames = new Map(channels.map(({ id, name }) => [id, name]));
  /** An address without the domain if it is the reader's. Others keep theirs, so no two look alike. */
  const address = (email: string) => {
    const isOwn = email.length > domain.length && email.endsWith(domain);
    return <Name text={isOwn ? email.slice(0, -domain.length) : email} />;
  };
  return {
    address,
    /** At the beginning of a sentence or within it. */
    actor: (of: string, place: "first" | "within" = "first") => {
      if (of === "anonymous") return <b>Someone</b>;
      const { name } = describeActor(of);
      if (/^(key|mcp):/.test(of)) return sentence`${place === "within" ? "the key" : "Key"} ${<Name text={name} />}`;
      return address(name);
    },
    key: (id: string) => {
      const name = keyNames.get(id);
      return name === undefined ? <code>{id}</code> : <Name text={name} />;
    },
    channel: (id: string): Child => {
      const name = channelNames.get(id);
      return name === undefined ? "a channel that was removed later" : sentence`the channel ${<Name text={name} />}`;
    },
  };
}
