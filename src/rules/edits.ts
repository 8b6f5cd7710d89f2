import type { RuleRow } from "../core/account-rules.ts";
import type { AuditDetail, AuditRow } from "../core/audit.ts";
import { definitionOf } from "./schemas.ts";

/** A change of the rules of an account. */
export interface Edited {
  readonly rows: readonly RuleRow[];
  /** For the audit log: the rule, or none. */
  readonly subject: string;
  readonly detail: AuditDetail;
}

/** When rules are changed, and by whom. */
export type EditedAt = Pick<RuleRow, "changedAt" | "changedBy">;

export function added(rows: readonly RuleRow[], place: number, row: RuleRow): Edited {
  const { name, effect } = definitionOf(row);
  const version = row.version > 1 && { version: row.version };
  return {
    rows: rows.toSpliced(place, 0, row),
    subject: row.id,
    detail: { change: "added", name, effect, ...version },
  };
}

/** `members`: those that change, for the audit log. */
export function changed(
  rows: readonly RuleRow[],
  row: RuleRow,
  definition: string,
  at: EditedAt,
  members?: string,
): Edited {
  const next = { ...row, ...at, version: row.version + 1, definition };
  const named = members !== undefined && { changed: members };
  const detail = { change: "changed", name: definitionOf(next).name, ...named, ...pastOf(row) };
  return { rows: rows.map((one) => (one === row ? next : one)), subject: row.id, detail };
}

export function removed(rows: readonly RuleRow[], row: RuleRow): Edited {
  const detail = { change: "removed", name: definitionOf(row).name, position: rows.indexOf(row), ...pastOf(row) };
  return { rows: rows.filter((one) => one !== row), subject: row.id, detail };
}

/** What the audit log keeps of a rule that is changed or removed, so that this can be undone. */
function pastOf({ version, definition }: RuleRow): AuditDetail {
  return { version, before: definition };
}

/** The rules without the change that the entry is about; null: it is no change of a single rule, or that rule was changed since. */
export function undone(
  { accountId, subject, detail }: AuditRow,
  rows: readonly RuleRow[],
  at: EditedAt,
): Edited | null {
  const { change, before } = detail;
  const version = Number(detail["version"] ?? 1);
  const row = rows.find(({ id }) => id === subject);
  if (change === "added" && row?.version === version) return removed(rows, row);
  if (typeof before !== "string") return null;
  if (change === "changed" && row?.version === version + 1) return changed(rows, row, before, at);
  if (change !== "removed" || row !== undefined) return null;
  const { changedAt: createdAt, changedBy: createdBy } = at;
  const back = { id: subject, accountId, version: version + 1, definition: before, createdAt, createdBy, ...at };
  return added(rows, Number(detail["position"] ?? rows.length), back);
}
