import { and, desc, eq, gt, isNull, lt, type Placeholder } from "drizzle-orm";
import type { GrantStore } from "../../src/core/grant.ts";
import { GRANTS_VERSION, readFact } from "../commands/facts.ts";
import * as commands from "../commands/grants.ts";
import type { StoreContext } from "./context.ts";
import type { Dialect } from "./dialect.ts";
import { read } from "./read.ts";

const inForce = ({ tables: { grants } }: Dialect, now: Placeholder) =>
  and(isNull(grants.endedAt), gt(grants.expiresAt, now), lt(grants.used, grants.calls));

const ALL = read({ now: "time" }, (dialect, { now }) => {
  const { grants } = dialect.tables;
  return dialect.db.select().from(grants).where(inForce(dialect, now)).orderBy(desc(grants.createdAt), grants.id);
});

const OF_ACCOUNT = read({ accountId: "text", now: "time" }, (dialect, { accountId, now }) => {
  const { grants } = dialect.tables;
  const isOfAccount = and(eq(grants.accountId, accountId), inForce(dialect, now));
  return dialect.db.select().from(grants).where(isOfAccount).orderBy(desc(grants.createdAt), grants.id);
});

/** What people allow agents for a while. */
export function createGrantStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): GrantStore {
  return {
    version: async () => (await readFact(reader, GRANTS_VERSION)) ?? "",
    list: (accountId, now) =>
      accountId === null ? ALL.all(reader, { now }) : OF_ACCOUNT.all(reader, { accountId, now }),
    end: (accountId, id, how) => writer.run(commands.end, { accountId, id, ...how, version: crypto.randomUUID() }),
  };
}
