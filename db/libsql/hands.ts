import type { HeldCounts } from "./held-counts.ts";
import type { Refused } from "./refused.ts";
import type { WrittenActions } from "./recent.ts";
import type { HeaderSeal } from "./rows.ts";
import type { Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";

/** What the statements of this store work with: reads go to `sql`, every write through `writer`. */
export interface StoreContext {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly seal: HeaderSeal;
  readonly recent: WrittenActions;
  readonly heldCounts: HeldCounts;
  readonly refused: Refused;
}
