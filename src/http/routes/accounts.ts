import type { SignUpGate } from "../../accounts/sign-up-gate.ts";
import { accountListJson } from "../../contract/accounts.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { checkNoBody } from "../../contract/signing-secret.ts";
import { NoQuery } from "../../contract/wait.ts";
import { DomainError } from "../../domain/errors.ts";
import { ACCOUNT_ID } from "../../domain/id.ts";
import { accountsPage, ACCOUNTS_PAGE_PATH } from "../../web/accounts.tsx";
import { json } from "../answer.ts";
import { readOptionalJson } from "../body.ts";
import { page, seeOther } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import type { FormOf, PersonOf } from "../session.ts";
import { callerOf } from "../visit.ts";

export interface AccountsRouteDeps {
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy" | "isOperators" | "requireOperator">;
}

const NONE = compileQuery(NoQuery);

/** The accounts of the service, for owners of the first one. */
export function accountsRoutes({ signUpGate }: AccountsRouteDeps): readonly Route[] {
  return [
    routeOf(API.listAccounts, async (context) => {
      await signUpGate.requireOperator(callerOf(context));
      readQuery(context.search, NONE);
      return json(accountListJson(await signUpGate.list(callerOf(context))));
    }),
    routeOf(API.allowAccount, async (context, params) => {
      await signUpGate.requireOperator(callerOf(context));
      readQuery(context.search, NONE);
      checkNoBody(await readOptionalJson(context));
      await signUpGate.allow(callerOf(context), accountIn(params["id"]));
      return new Response(null, { status: 204 });
    }),
  ];
}

export interface AccountsPageDeps extends AccountsRouteDeps {
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
}

/** The same for people. */
export function accountsPages({ signUpGate, personOf, formOf }: AccountsPageDeps): readonly Route[] {
  const show: AnswerPerson = async (_visit, person) => {
    const [accounts, closedBy] = await Promise.all([signUpGate.list(person.caller), signUpGate.closedBy()]);
    return page("own", accountsPage({ user: person, accounts, closedBy }));
  };
  const allow: AnswerPerson = async (context, person, { id }) => {
    await formOf(context, person);
    await signUpGate.allow(person.caller, accountIn(id));
    return seeOther("own", ACCOUNTS_PAGE_PATH);
  };
  return [
    personPage(personOf, "GET", ACCOUNTS_PAGE_PATH, show),
    personPage(personOf, "POST", `${ACCOUNTS_PAGE_PATH}/{id}/allow`, allow),
  ];
}

function accountIn(id = ""): string {
  if (ACCOUNT_ID.test(id)) return id;
  throw new DomainError("not_found", "There is no such account.");
}
