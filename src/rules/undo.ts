import type { RuleRow } from "../core/account-rules.ts";
import type { AuditDetail, AuditRow } from "../core/audit.ts";
import { definitionOf } from "./schemas.ts";

/** A change of the rules of an account. */
export interface Edited {
  readonly rows: readonly RuleRow[];
  /** For the audit log. */
  readonly subject: string;
  readonly detail: AuditDetail;
}

/** The last change of the rules, if it can be undone. */
export interface LastChange extends Pick<AuditRow, "seq" | "at" | "actor"> {
  readonly change: "added" | "changed" | "removed";
  /** Of the rule. */
  readonly name: string;
}

/** What the audit log keeps of a rule that is changed or removed, so that this can be undone. */
export function pastOf({ version, definition }: RuleRow): AuditDetail {
  return { version, before: definition };
}

/** Null: it is no change of a single rule, or that rule was changed since. */
export function lastChangeOf(entry: AuditRow | undefined, rows: readonly RuleRow[]): LastChange | null {
  if (entry === undefined || undone(entry, rows, { changedAt: entry.at, changedBy: "system" }) === null) return null;
  const { seq, at, actor, detail } = entry;
  const { change, name } = detail;
  if (change !== "added" && change !== "changed" && change !== "removed") return null;
  return { seq, at, actor, change, name: String(name) };
}

/** The rules without the change that the entry is about; null: see `lastChangeOf`. */
export function undone(
  { accountId, subject, detail }: AuditRow,
  rows: readonly RuleRow[],
  at: Pick<RuleRow, "changedAt" | "changedBy">,
): Edited | null {
  const { change, before } = detail;
  const version = Number(detail["version"] ?? 1);
  const place = rows.findIndex(({ id }) => id === subject);
  const row = rows[place];
  if (change === "added" && row?.version === version) {
    const gone = { change: "removed", name: definitionOf(row).name, position: place, ...pastOf(row) };
    return { rows: rows.toSpliced(place, 1), subject, detail: gone };
  }
  if (typeof before !== "string") return null;
  if (change === "changed" && row?.version === version + 1) {
    const back = { ...row, ...at, version: row.version + 1, definition: before };
    const { name } = definitionOf(back);
    return { rows: rows.with(place, back), subject, detail: { change: "changed", name, ...pastOf(row) } };
  }
  if (change !== "removed" || row !== undefined) return null;
  const { changedAt: createdAt, changedBy: createdBy } = at;
  const back = { id: subject, accountId, version: version + 1, definition: before, createdAt, createdBy, ...at };
  const { name, effect } = definitionOf(back);
  const position = Number(detail["position"] ?? rows.length);
  return {
    rows: rows.toSpliced(position, 0, back),
    subject,
    detail: { change: "added", name, effect, version: back.version },
  };
}
