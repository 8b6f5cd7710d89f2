import type { KeyService } from "../../accounts/keys.ts";
import { checkCreateKey, createdKeyJson, keyListJson } from "../../contract/key.ts";
import { API } from "../../contract/operations.ts";
import { RevokeQuery } from "../../contract/pause.ts";
import { compileQuery } from "../../contract/query.ts";
import { NoQuery } from "../../contract/wait.ts";
import { DomainError } from "../../domain/errors.ts";
import { KEY_ID } from "../../domain/id.ts";
import { json } from "../answer.ts";
import { readJson } from "../body.ts";
import { parseFields } from "../parse-json.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface KeyRouteDeps {
  readonly keyService: KeyService;
}

const NONE = compileQuery(NoQuery);
const REVOKE = compileQuery(RevokeQuery);

/** Keys of the account, for its owners (decisions 1). */
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
      // What can't be an id is as unknown as one that nobody has, in the same words (hostile 1).
      if (!KEY_ID.test(id)) throw new DomainError("not_found", "There is no such key.");
      await keyService.revoke(callerOf(context), id, unfinished);
      return new Response(null, { status: 204 });
    }),
  ];
}
