import type { LinkStore } from "../../src/core/store.ts";
import { findRow } from "../sql/read.ts";
import { command } from "./command.ts";
import { approvalLinks } from "../libsql/schema.ts";
import type { Connection } from "../sql/writer.ts";

/** Stores links. A link that is stored again for a repeated mail keeps its expiry; its hash may differ after a key change. */
export const keep = command<LinkStore["keep"]>(async (tx, links, expiresAt) => {
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

export const forgetAll = command<LinkStore["forgetAll"]>(async ({ db }) => {
  await db.delete(approvalLinks);
});

export function createLinkStore({ reader, writer }: Connection): LinkStore {
  return {
    ...writer.methods({ keep, forgetAll }),
    find: ({ actionId, run, decision }) => findRow(reader, approvalLinks, { actionId, run, decision }),
  };
}
