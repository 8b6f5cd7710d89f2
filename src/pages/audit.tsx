/** @jsxImportSource hono/jsx */
import { AUDIT_KINDS, type AuditKind, type AuditRow } from "../audit/audit.ts";
import { Button, Select } from "./form.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { NextPage, PageHead, Table, Time, UntrustedText } from "./parts.tsx";
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
}

export function auditPage({ user, entries, kind, older }: AuditPageProps): string {
  return render(
    <Layout title="Audit log" nav="Settings" user={user} width="wide">
      <PageHead title="Audit log" back={SETTINGS_LINK}>
        <p class="quiet">
          Who did what to this account. Entries are never changed. <a href="/docs/security">What the log records</a>.
        </p>
      </PageHead>
      <form method="get" action={AUDIT_PATH} class="card">
        <Select
          name="kind"
          label="Event"
          none="All events"
          options={AUDIT_KINDS.map((one) => [one, kindLabel(one)])}
          chosen={kind}
        />
        <div class="buttons">
          <Button look="plain">Show</Button>
        </div>
      </form>
      {entries.length === 0 ? (
        <p class="quiet">No entries of this kind.</p>
      ) : (
        <Table
          caption="Audit log"
          heads={["When", "What", "Who", "Subject", "Client", "Details"]}
          isWide
          rows={entries.map(({ at, kind: what, actor, subject, client, detail }) => [
            <Time at={at} />,
            kindLabel(what),
            <UntrustedText text={actor} />,
            <UntrustedText text={subject} />,
            client === "" ? "the service" : <UntrustedText text={client} />,
            <span class="small">
              <UntrustedText text={detailText(detail)} />
            </span>,
          ])}
        />
      )}
      <NextPage href={older} name="Older" />
    </Layout>,
  );
}

/** `key_revoked` as people read it. */
function kindLabel(kind: AuditKind): string {
  const text = kind.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function detailText(detail: AuditRow["detail"]): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
    .join(", ");
}
