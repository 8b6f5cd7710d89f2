import { and, isNull } from "drizzle-orm";
import type { Pause } from "../../src/core/pause.ts";
import type { LaneName } from "../../src/core/store.ts";
import { hasValues } from "../sql/dialect.ts";
import type { Tx } from "./command.ts";
import type { Lists } from "./lists.ts";
import { read } from "../sql/read.ts";

type Subject = Pick<Pause, "accountId" | "kind" | "subject">;

/** The pause of the same subject that is in force; undefined: there is none. */
export async function findInForce(
  { db, tables: { pauses } }: Tx,
  { accountId, kind, subject }: Subject,
): Promise<Pause | undefined> {
  const isInForce = and(hasValues(pauses, { accountId, kind, subject }), isNull(pauses.endedAt));
  return (await db.select().from(pauses).where(isInForce))[0];
}

const PAUSE = read({ accountId: "text", kind: "text", subject: "text" }, ({ db, tables: { pauses } }, arg) => {
  const isInForce = and(hasValues(pauses, arg), isNull(pauses.endedAt));
  return db.select({ id: pauses.id }).from(pauses).where(isInForce);
});

/** What holds back an action of a lane if it is paused. */
export function pausesOf({ accountId, keyId, host }: LaneName): readonly Subject[] {
  return [
    { accountId, kind: "account", subject: "" },
    { accountId, kind: "key", subject: keyId },
    { accountId, kind: "host", subject: host },
    ...stopsOf({ accountId }),
  ];
}

/** What holds back a notification: the stop of its account alone. */
export function stopsOf({ accountId }: Pick<Subject, "accountId">): readonly Subject[] {
  return [{ accountId, kind: "sign_up", subject: accountId }];
}

/** Which of the subjects are paused, for `isPaused`. */
export async function findPaused(lists: Lists, subjects: readonly Subject[]): Promise<ReadonlySet<string>> {
  const asked = new Map(subjects.map((one) => [nameOf(one), one]));
  const found = await lists.find(PAUSE, [...asked.values()]);
  return new Set([...asked.keys()].filter((_, at) => (found[at] ?? []).length > 0));
}

export function isPaused(paused: ReadonlySet<string>, subjects: readonly Subject[]): boolean {
  return paused.size > 0 && subjects.some((one) => paused.has(nameOf(one)));
}

function nameOf({ accountId, kind, subject }: Subject): string {
  return `${accountId} ${kind} ${subject}`;
}
