import type { LinkStore } from "../../src/core/store.ts";
import type { StoreContext } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { read } from "../sql/read.ts";
import { command } from "./command.ts";

/**
 * Stores links of approvals; returns when the first of them ends. A link that is stored again for a repeated mail keeps its
 * end; its hash changes with the master key.
 */
export const keep = command<LinkStore["keep"]>(async (tx, links, expiresAt) => {
  const { approvalLinks } = tx.tables;
  const { actionId, run, decision } = approvalLinks;
  const ends: number[] = [];
  for (const link of links) {
    const [kept] = await tx.db
      .insert(approvalLinks)
      .values({ ...link, expiresAt })
      .onConflictDoUpdate({ target: [actionId, run, decision], set: { hash: link.hash } })
      .returning({ expiresAt: approvalLinks.expiresAt });
    if (kept !== undefined) ends.push(kept.expiresAt.getTime());
  }
  return new Date(Math.min(...ends));
});

export const forgetAll = command<LinkStore["forgetAll"]>(async ({ db, tables: { approvalLinks } }) => {
  await db.delete(approvalLinks);
});

const FIND = read({ actionId: "text", run: "number", decision: "text" }, ({ db, tables: { approvalLinks } }, arg) =>
  db.select().from(approvalLinks).where(hasValues(approvalLinks, arg)),
);

export function createLinkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): LinkStore {
  return {
    keep: writer.method(keep),
    forgetAll: writer.method(forgetAll),
    find: ({ actionId, run, decision }) => FIND.get(reader, { actionId, run, decision }),
  };
}
