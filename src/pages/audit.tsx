/** @jsxImportSource hono/jsx */
import { AUDIT_KINDS, type AuditKind, type AuditRow } from "../audit/audit.ts";
import { UntrustedText } from "./code.tsx";
import { Button } from "./form.tsx";
import { Layout, render } from "./layout.tsx";
import { Table, Time } from "./parts.tsx";
import type { PageUser } from "./words.ts";

export const AUDIT_PATH = "/audit";

export interface AuditPageProps {
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
    <Layout title="Audit log" place="Settings" user={user} width="wide">
      <div class="head">
        <p class="small on-screen">
          <a href="/settings">Settings</a>
        </p>
        <h1>Audit log</h1>
        <p class="quiet">
          Who did what to this account. Entries are never changed. <a href="/docs/security">What the log records</a>.
        </p>
      </div>
      <form method="get" action={AUDIT_PATH} class="card">
        <div class="field">
          <label for="kind">Event</label>
          <select id="kind" name="kind">
            <option value="">All events</option>
            {AUDIT_KINDS.map((one) => (
              <option value={one} selected={one === kind}>
                {auditWord(one)}
              </option>
            ))}
          </select>
        </div>
        <div class="buttons">
          <Button look="plain">Show</Button>
        </div>
      </form>
      {entries.length === 0 ? <p class="quiet">No entries of this kind.</p> : <Entries entries={entries} />}
      {older === null ? null : (
        <p>
          <a class="button button-plain" href={older}>
            Older
          </a>
        </p>
      )}
    </Layout>,
  );
}

function Entries({ entries }: Pick<AuditPageProps, "entries">) {
  return (
    <Table caption="Audit log" heads={["When", "What", "Who", "Subject", "Client", "Details"]} isWide>
      {entries.map(({ at, kind, actor, subject, client, detail }) => (
        <tr>
          <td>
            <Time at={at} />
          </td>
          <td>{auditWord(kind)}</td>
          <td>
            <UntrustedText text={actor} />
          </td>
          <td>
            <UntrustedText text={subject} />
          </td>
          <td>{client === "" ? "the service" : <UntrustedText text={client} />}</td>
          <td class="small">
            <UntrustedText text={detailWords(detail)} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** `key_revoked` as people read it. */
function auditWord(kind: AuditKind): string {
  const words = kind.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function detailWords(detail: AuditRow["detail"]): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
    .join(", ");
}
