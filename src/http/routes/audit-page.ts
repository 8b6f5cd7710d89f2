import type { AuditService } from "../../accounts/audit.ts";
import { auditCursor, AuditQuery, checkAudit } from "../../contract/audit.ts";
import { compileQuery } from "../../contract/query.ts";
import { AUDIT_PATH, auditPage } from "../../web/audit.tsx";
import { page } from "../page.ts";
import { personPage } from "../person-page.ts";
import { readQuery } from "../query.ts";
import type { Route } from "../route.ts";
import type { PersonOf } from "../session.ts";

export interface AuditPageDeps {
  readonly auditService: Pick<AuditService, "list">;
  readonly personOf: PersonOf;
}

const PAGE_QUERY = compileQuery(AuditQuery);

/** The audit log for people, filtered by the parameters of /v1/audit. */
export function auditPages({ auditService, personOf }: AuditPageDeps): readonly Route[] {
  return [
    personPage(personOf, "GET", AUDIT_PATH, async ({ search }, person) => {
      const asked = checkAudit(readQuery(withoutEmpty(search), PAGE_QUERY));
      const { rows, before } = await auditService.list(person.caller, asked);
      const next = new URLSearchParams(withoutEmpty(search));
      if (before !== null) next.set("cursor", auditCursor(before));
      const older = before === null ? null : `${AUDIT_PATH}?${next.toString()}`;
      return page("own", auditPage({ user: person, entries: rows, kind: asked.kinds[0] ?? null, older }));
    }),
  ];
}

/** A form sends its empty fields too. */
function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
