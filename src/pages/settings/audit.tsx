/** @jsxImportSource hono/jsx */
import type { Static } from "typebox";
import { queryCheck } from "../../api/check.ts";
import { encodeCursor } from "../../api/cursor.ts";
import { AuditParameters, checkAudit } from "../../audit/audit.ts";
import type { ApiKey } from "../../core/account-store.ts";
import type { AuditKind, AuditPage, AuditRow } from "../../core/audit.ts";
import type { Channel } from "../../core/channel.ts";
import { AUDIT_MENU_MAX } from "../../core/limits.ts";
import type { TeamMember } from "../../core/team-store.ts";
import { withoutEmpty } from "../../http/body.ts";
import { EmptyState, FilterMenu } from "../../ui/controls.tsx";
import { queryText, render } from "../../ui/layout.tsx";
import { Facts, isSameDay, listedTime, NextPage, time, untrusted, untrustedLines } from "../../ui/parts.tsx";
import { counted, inWords, networkText, type PageUser } from "../../ui/text.ts";
import { type AuditNames, auditNames, kindLabel, PHRASE_GROUPS, PHRASES, WAYS } from "./audit-words.tsx";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";

type Query = Static<typeof AuditParameters>;

interface AuditPageProps {
  readonly user: PageUser;
  /** The parameters of the page. */
  readonly query: Query;
  readonly log: AuditPage;
  /** Who can be chosen, and the names of what entries mention. */
  readonly people: readonly Pick<TeamMember, "email">[];
  readonly keys: readonly Pick<ApiKey, "id" | "name" | "revokedAt">[];
  readonly channels: readonly Pick<Channel, "id" | "name">[];
  readonly now: Date;
}

export function auditPage({ user, query, log, people, keys, channels, now }: AuditPageProps): string {
  const { rows, before } = log;
  const isFiltered = query.kind !== undefined || query.actor !== undefined;
  const names = auditNames(user, keys, channels);
  const liveKeys = keys.filter(({ revokedAt }) => revokedAt === null);
  const known = [...people.map(({ email }) => `user:${email}`), ...liveKeys.map(({ name }) => `key:${name}`)];
  const actors = [...new Set(known)].slice(0, AUDIT_MENU_MAX).concat("system", "anonymous");
  const older =
    before === null ? null : SETTINGS_PATHS.audit + queryText({ ...query, cursor: encodeCursor(String(before)) });
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
          {actorMenu(query, actors, names)}
          {kindMenu(query)}
        </>
      }
      now={now}
    >
      {rows.length > 0 ? (
        <ol class="audit" data-days="">
          {rows.map((entry, at) => (
            <>
              {isSameDay(entry.at, rows[at - 1]?.at ?? now) ? null : (
                <li class="day">{listedTime(entry.at, "weekday")}</li>
              )}
              {logEntry(entry, query, names)}
            </>
          ))}
        </ol>
      ) : (
        <EmptyState icon="clock" title={older === null ? "No entries match" : "No match so far"}>
          <p>
            {older === null ? null : "None of these entries match; older ones may. "}
            {isFiltered ? <a href={SETTINGS_PATHS.audit}>Show all events</a> : null}
          </p>
        </EmptyState>
      )}
      <NextPage href={older} name={rows.length === 0 ? "Look further back" : "Older"} />
    </SettingsPage>,
  );
}

/** The first page with other filters. */
function auditPath(query: Query, changes: { readonly kind: readonly AuditKind[] } | { readonly actor: string | null }) {
  return SETTINGS_PATHS.audit + queryText({ ...query, ...changes, cursor: null });
}

function logEntry(entry: AuditRow, query: Query, names: AuditNames) {
  const { seq, at, actor, kind, subject, client, detail } = entry;
  const { reason, via } = detail;
  const way = typeof via === "string" ? (WAYS[via] ?? "") : "";
  return (
    <li>
      {listedTime(at, "minute")}
      <div>
        <p>
          <a href={auditPath(query, { actor })} title="Show only their entries">
            {names.actor(actor)}
          </a>{" "}
          {PHRASES[kind](entry, names)}.
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

function actorMenu(query: Query, actors: readonly string[], names: AuditNames) {
  const { actor = null } = query;
  const shown = (one: string) => <span>{one === "anonymous" ? "Failed logins" : names.actor(one)}</span>;
  const chosen = actor === null ? null : (actors.find((one) => actorsLike(one).includes(actor)) ?? actor);
  // Keeps the chosen actor, even if they have left or the key is revoked.
  const all = chosen === null || actors.includes(chosen) ? actors : [chosen, ...actors];
  return (
    <FilterMenu
      isAtEnd
      label={actor === null ? "Everybody" : shown(actor)}
      all="Everybody"
      options={all.map((one) => [one, shown(one)])}
      chosen={chosen}
      path={(one) => auditPath(query, { actor: one })}
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

/** The kinds by subject, since a menu of all of them would be too long. */
function kindMenu(query: Query) {
  const { kind: kinds = [] } = query;
  const options = Object.entries(PHRASE_GROUPS).flatMap(([title, group]) => {
    // Safe: the members of a group are kinds.
    const some = Object.keys(group) as AuditKind[];
    const each = some.map((kind) => ({ kinds: [kind], label: kindLabel(kind), name: kindLabel(kind) }));
    return [{ kinds: some, label: title, name: <b>{title}</b> }, ...(each.length === 1 ? [] : each)];
  });
  const found = options.find(
    (one) => one.kinds.length === kinds.length && one.kinds.every((kind) => kinds.includes(kind)),
  );
  return (
    <FilterMenu
      isAtEnd
      label={kinds.length === 0 ? "All events" : (found?.label ?? counted(kinds.length, "kind"))}
      all="All events"
      options={options.map((one) => [one.kinds.join(), one.name])}
      chosen={kinds.length === 0 ? null : (found?.kinds.join() ?? "")}
      path={(value) => auditPath(query, { kind: options.find((one) => one.kinds.join() === value)?.kinds ?? [] })}
    />
  );
}

const readQuery = queryCheck(AuditParameters);

/** The audit log for people, filtered by the parameters of /v1/audit. Here an actor includes all their names in the log. */
export function auditPages(deps: PageDeps) {
  const { auditService, teamService, keyService, channelService, clock } = deps;
  return personPages(deps).get(SETTINGS_PATHS.audit, async ({ context, person: user }) => {
    const query = readQuery(withoutEmpty(context.search));
    const filter = checkAudit(query);
    const log = await auditService.list(user.caller, { ...filter, actors: filter.actors.flatMap(actorsLike) });
    const [people, keys, channels] = await Promise.all([
      teamService.list(user.caller),
      keyService.list(user.caller),
      channelService.list(user.caller),
    ]);
    return auditPage({ user, query, log, people, keys, channels, now: clock.now() });
  });
}
