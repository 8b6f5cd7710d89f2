/** @jsxImportSource hono/jsx */
import { AUDIT_KINDS, type AuditKind, type AuditRow } from "../audit/audit.ts";
import { EmptyState, LinkMenu } from "./controls.tsx";
import { Name, NextPage, UntrustedText, WhenTime } from "./parts.tsx";
import { DataTable, None, settingsFrame } from "./settings-frame.tsx";
import type { PageUser } from "./text.ts";

export const AUDIT_PATH = "/audit";

interface AuditPageProps {
  readonly user: PageUser;
  /** Newest first. */
  readonly entries: readonly AuditRow[];
  /** The kind to filter by; null: all. */
  readonly kind: AuditKind | null;
  /** Path of the next page; null when there is none. */
  readonly older: string | null;
  readonly now: Date;
}

/** Who did what to the account, for owners. */
export function auditPage({ user, entries, kind, older, now }: AuditPageProps): string {
  return settingsFrame({
    user,
    section: "Audit log",
    title: "Audit log",
    intro: (
      <>
        Who did what to this account. Entries are never changed. <a href="/docs/security">What the log records</a>
      </>
    ),
    actions: <KindMenu kind={kind} />,
    now,
    children: (
      <>
        {entries.length === 0 ? (
          <EmptyState icon="clock" title="No entries of this kind">
            <p>
              <a href={AUDIT_PATH}>Show all events</a>
            </p>
          </EmptyState>
        ) : (
          <DataTable
            caption="Audit log"
            columns={[
              { name: "When" },
              { name: "What" },
              { name: "Who", as: "main" },
              { name: "Details", as: "wide" },
              { name: "From" },
            ]}
            rows={entries.map(({ at, kind: what, actor, subject, client, detail }) => [
              <WhenTime at={at} now={now} />,
              kindLabel(what),
              <>
                <Name text={actor.slice(actor.indexOf(":") + 1)} />
                <Way of={detail} />
              </>,
              <>
                <UntrustedText text={subject} />
                <span class="says">
                  <UntrustedText text={detailText(detail)} />
                </span>
              </>,
              client === "" ? (
                <None>Service</None>
              ) : (
                <span class="nowrap">
                  <UntrustedText text={client} />
                </span>
              ),
            ])}
          />
        )}
        <NextPage href={older} name="Older" />
      </>
    ),
  });
}

function KindMenu({ kind }: { readonly kind: AuditKind | null }) {
  return (
    <LinkMenu
      isAtEnd
      isChosen={kind !== null}
      label={kind === null ? "All events" : kindLabel(kind)}
      links={[
        { href: AUDIT_PATH, name: "All events", isChosen: kind === null },
        ...AUDIT_KINDS.map((one) => ({
          href: `${AUDIT_PATH}?kind=${one}`,
          name: kindLabel(one),
          isChosen: one === kind,
        })),
      ]}
    />
  );
}

/** `key_revoked` as people read it. */
function kindLabel(kind: AuditKind): string {
  const text = kind.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const WAYS: Readonly<Record<string, string>> = {
  api: "over the API",
  page: "on a page",
  mail: "by the link in a mail",
  mcp: "over MCP",
  elicitation: "asked by their MCP client",
  system: "by itself",
};

/** How they came: by a page, the API, a tool. */
function Way({ of: { via } }: { readonly of: AuditRow["detail"] }) {
  return typeof via === "string" ? <span class="says">{WAYS[via] ?? <UntrustedText text={via} />}</span> : null;
}

function detailText(detail: AuditRow["detail"]): string {
  return Object.entries(detail)
    .filter(([name, value]) => value !== null && name !== "via")
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
    .join(", ");
}
