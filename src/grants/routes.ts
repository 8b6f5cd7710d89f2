import Type from "typebox";
import { createApiRoutes, operation, pathParams } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";
import { grantIdSchema, GrantListJson, serializeGrant } from "./schemas.ts";
import type { GrantService } from "./service.ts";

export const GrantParams = pathParams(Type.Object({ id: grantIdSchema }), "There is no such grant in force.");

/** What people allow agents for a while: an approval makes a grant. */
export function grantRoutes({ grantService }: { readonly grantService: Pick<GrantService, "list" | "end"> }) {
  return createApiRoutes()
    .get(
      "/v1/grants",
      async ({ caller }) => jsonOf({ data: (await grantService.list(caller)).map(serializeGrant) }),
      operation({
        operationId: "listGrants",
        permission: "approve",
        tag: "Auth",
        summary: "List what people allow agents for a while",
        description: "Lists the grants in force, newest first.",
        notes: ["An approval with `grant` makes one. Each use of it is an entry of the audit log."],
        answers: { 200: { description: "The grants.", schema: GrantListJson } },
      }),
    )
    .delete(
      "/v1/grants/:id",
      ({ caller, params }) => noContent(grantService.end(caller, params.id)),
      operation({
        operationId: "endGrant",
        permission: "approve",
        tag: "Auth",
        summary: "End a grant",
        description: "Ends a grant: calls like that are held again, on every node.",
        params: GrantParams,
        answers: { 204: { description: "Nothing passes by it any more.", schema: null } },
      }),
    );
}
