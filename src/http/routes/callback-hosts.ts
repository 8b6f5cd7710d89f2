import type { CallbackHostService } from "../../accounts/callback-hosts.ts";
import {
  callbackHostJson,
  callbackHostListJson,
  checkAddCallbackHost,
  checkCallbackHost,
  RemoveCallbackHostQuery,
} from "../../contract/callback-hosts.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { parseFields } from "../parse-json.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface CallbackHostRouteDeps {
  readonly callbackHosts: CallbackHostService;
}

const NONE = compileQuery(NoQuery);
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
