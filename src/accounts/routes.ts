import type { createReadAccount } from "./people.ts";
import {
  accountJson,
  type AccountLimits,
  checkCreateKey,
  createdKeyJson,
  keyListJson,
  accountListJson,
} from "./schemas.ts";
import { API } from "../api/operations.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { NoQuery } from "../actions/schemas.ts";
import { json } from "../http/errors.ts";
import { readQuery } from "../http/query.ts";
import { type Route, routeOf } from "../http/router.ts";
import { callerOf } from "../http/context.ts";
import type { KeyService } from "./keys.ts";
import { RevokeQuery } from "../pauses/schemas.ts";
import { DomainError } from "../api/domain-error.ts";
import { KEY_ID, ACCOUNT_ID } from "../runtime/ids.ts";
import { readJson, parseFields, readOptionalJson } from "../http/body.ts";
import {
  type CallbackHostService,
  callbackHostJson,
  callbackHostListJson,
  checkAddCallbackHost,
  checkCallbackHost,
  RemoveCallbackHostQuery,
} from "./callback-hosts.ts";
import type { SigningService } from "./signing-secrets.ts";
import {
  checkNoBody,
  checkOrigin,
  RotateQuery,
  rotationJson,
  signingSecretJson,
  SigningSecretQuery,
} from "./signing-schemas.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { accountsPage, ACCOUNTS_PAGE_PATH } from "../pages/settings.tsx";
import { page, seeOther } from "../http/page.ts";
import { type AnswerPerson, personPage, type FormOf, type PersonOf } from "../http/session.ts";

export interface AccountRouteDeps {
  readonly readAccount: ReturnType<typeof createReadAccount>;
  readonly limits: AccountLimits;
}

const NONE = compileQuery(NoQuery);

export function accountRoutes({ readAccount, limits }: AccountRouteDeps): readonly Route[] {
  return [
    routeOf(API.getAccount, async (context) => {
      readQuery(context.search, NONE);
      const caller = callerOf(context);
      return json(accountJson(await readAccount(caller), caller, limits));
    }),
  ];
}

export interface KeyRouteDeps {
  readonly keyService: KeyService;
}

const REVOKE = compileQuery(RevokeQuery);

/** Keys of the account, for its owners. */
export function keyRoutes({ keyService }: KeyRouteDeps): readonly Route[] {
  return [
    routeOf(API.listKeys, async (context) => {
      readQuery(context.search, NONE);
      return json(keyListJson(await keyService.list(callerOf(context))));
    }),
    routeOf(API.createKey, async (context) => {
      readQuery(context.search, NONE);
      const request = checkCreateKey((await readJson(context, parseFields)).value);
      const { row, key } = await keyService.create(callerOf(context), request);
      return json(createdKeyJson(row, key), 201, { "cache-control": "no-store" });
    }),
    routeOf(API.revokeKey, async (context, params) => {
      const { unfinished } = readQuery(context.search, REVOKE);
      const id = params["id"] ?? "";
      // A malformed id gets the same answer as an unknown one.
      if (!KEY_ID.test(id)) throw new DomainError("not_found", "There is no such key.");
      await keyService.revoke(callerOf(context), id, unfinished);
      return new Response(null, { status: 204 });
    }),
  ];
}

export interface CallbackHostRouteDeps {
  readonly callbackHosts: CallbackHostService;
}

const REMOVE = compileQuery(RemoveCallbackHostQuery);

/** Where callbacks of keys with a hold may go, for owners. */
export function callbackHostRoutes({ callbackHosts }: CallbackHostRouteDeps): readonly Route[] {
  return [
    routeOf(API.listCallbackHosts, async (context) => {
      readQuery(context.search, NONE);
      return json(callbackHostListJson(await callbackHosts.list(callerOf(context))));
    }),
    routeOf(API.addCallbackHost, async (context) => {
      readQuery(context.search, NONE);
      const host = checkAddCallbackHost((await readJson(context, parseFields)).value);
      return json(callbackHostJson(await callbackHosts.add(callerOf(context), host)));
    }),
    routeOf(API.removeCallbackHost, async (context) => {
      const host = checkCallbackHost(readQuery(context.search, REMOVE).host, "invalid_query");
      await callbackHosts.remove(callerOf(context), host);
      return new Response(null, { status: 204 });
    }),
  ];
}

export interface SigningSecretRouteDeps {
  readonly signingService: SigningService;
}

const READ = compileQuery(SigningSecretQuery);

const ROTATE = compileQuery(RotateQuery);

export function signingSecretRoutes({ signingService }: SigningSecretRouteDeps): readonly Route[] {
  return [
    routeOf(API.getSigningSecret, async (context) => {
      const { origin, for: use } = readQuery(context.search, READ);
      const isShown = context.request.method !== "HEAD";
      const secret = await signingService.read(callerOf(context), checkOrigin(origin), use, isShown);
      return json(signingSecretJson(secret), 200, { "cache-control": "no-store" });
    }),
    routeOf(API.rotateSigningSecret, async (context) => {
      const { origin, for: use } = readQuery(context.search, ROTATE);
      const checked = origin === undefined ? null : checkOrigin(origin);
      checkNoBody(await readOptionalJson(context));
      return json(rotationJson(await signingService.rotate(callerOf(context), checked, use)));
    }),
  ];
}

export interface AccountsRouteDeps {
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy" | "isOperators" | "requireOperator">;
}

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

/** The page of the accounts, for owners of the first one. */
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
