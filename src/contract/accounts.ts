import Type, { type Static } from "typebox";
import { ACCOUNTS_LISTED_MAX } from "../domain/limits.ts";
import { AccountId } from "./account.ts";
import { dateTime, nullable, plainText } from "./kinds.ts";

/** An account of the service, as owners of the first one see it. */
export const ListedAccount = Type.Object(
  {
    id: AccountId,
    email: nullable(plainText("Of its first person; null: it has none.", "ann@example.com")),
    created_at: dateTime("When it was made."),
    first: Type.Boolean({ description: "It is the one that the first start made.", examples: [false] }),
    stopped: Type.Boolean({
      description: "Its keys are refused, and nothing of it is sent, until it is allowed.",
      examples: [true],
    }),
    allowed_at: nullable(dateTime("When it was allowed; null: nobody had to, or nobody has.")),
  },
  { title: "ListedAccount", description: "An account of the service." },
);
export type ListedAccount = Static<typeof ListedAccount>;

export const AccountList = Type.Object(
  {
    data: Type.Array(ListedAccount, {
      description: `The accounts, those that are stopped first, then the newest; ${ACCOUNTS_LISTED_MAX} at most.`,
    }),
  },
  { title: "AccountList", description: "The accounts of the service." },
);
export type AccountList = Static<typeof AccountList>;

/** An account as it is kept, as far as it is shown. */
export interface ShownAccount {
  readonly id: string;
  readonly email: string | null;
  readonly createdAt: Date;
  readonly isFirst: boolean;
  readonly isStopped: boolean;
  readonly allowedAt: Date | null;
}

/** The accounts as JSON text. */
export function accountListJson(accounts: readonly ShownAccount[]): string {
  const list: AccountList = { data: accounts.map(accountItem) };
  return JSON.stringify(list);
}

function accountItem({ id, email, createdAt, isFirst, isStopped, allowedAt }: ShownAccount): ListedAccount {
  return {
    id,
    email,
    created_at: createdAt.toISOString(),
    first: isFirst,
    stopped: isStopped,
    allowed_at: allowedAt?.toISOString() ?? null,
  };
}
