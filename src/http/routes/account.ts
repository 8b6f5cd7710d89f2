import type { createReadAccount } from "../../accounts/account.ts";
import { accountJson, type AccountLimits } from "../../contract/account.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import { json } from "../answer.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface AccountRouteDeps {
  readonly readAccount: ReturnType<typeof createReadAccount>;
  readonly limits: AccountLimits;
}

const NONE = compileQuery(NoQuery);

/** Who am I (decisions 1). */
export function accountRoutes({ readAccount, limits }: AccountRouteDeps): readonly Route[] {
  return [
    routeOf(API.getAccount, async (context) => {
      readQuery(context.search, NONE);
      const caller = callerOf(context);
      return json(accountJson(await readAccount(caller), caller, limits));
    }),
  ];
}
