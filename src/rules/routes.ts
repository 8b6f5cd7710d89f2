import Type from "typebox";
import { bodyOperation, createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import {
  ChangeRule,
  CreateRule,
  ReorderRules,
  ReplaceRules,
  RuleId,
  RuleJson,
  RuleList,
  serializeRule,
  serializeRules,
} from "./schemas.ts";
import type { RuleService } from "./service.ts";

const RuleParams = pathParams(Type.Object({ id: RuleId }), "There is no such rule.");

const FORCE =
  "Every create that is answered later is decided by it, on every node; what was accepted before is checked again before it is first sent.";

/** The rules of an account: what is held, refused or allowed. */
export function ruleRoutes({ ruleService }: { readonly ruleService: RuleService }) {
  return createApiRoutes()
    .get(
      "/v1/rules",
      async ({ caller }) => jsonOf({ data: serializeRules(await ruleService.list(caller), caller.role) }),
      operation({
        operationId: "listRules",
        permission: "read",
        tag: "Auth",
        summary: "List the rules that decide what is held or refused",
        description: "Lists the rules of the account, in the order in which they are asked.",
        notes: ["The first that applies to a request decides. Agents and readers see names, effects and messages."],
        answers: { 200: { description: "The rules.", schema: RuleList } },
      }),
    )
    .post(
      "/v1/rules",
      async ({ caller, body: { before = null, ...definition } }) => {
        const { row, position } = await ruleService.add(caller, definition, before);
        return jsonOf(serializeRule(row, position, caller.role), 201);
      },
      bodyOperation({
        operationId: "createRule",
        permission: "manage",
        tag: "Auth",
        summary: "Add a rule",
        description: "Adds a rule behind all others, or before one of them.",
        notes: [FORCE],
        body: jsonBody(CreateRule),
        answers: { 201: { description: "The rule.", schema: RuleJson } },
      }),
    )
    .put(
      "/v1/rules",
      async ({ caller, body }) =>
        jsonOf({ data: serializeRules(await ruleService.replaceAll(caller, body.rules), caller.role) }),
      bodyOperation({
        operationId: "replaceRules",
        permission: "manage",
        tag: "Auth",
        summary: "Replace all rules at once",
        description: "Puts these rules in force in place of all others, in one step.",
        notes: ["A rule of the same name as before keeps its id.", FORCE],
        body: jsonBody(ReplaceRules),
        answers: { 200: { description: "The rules.", schema: RuleList } },
      }),
    )
    .post(
      "/v1/rules/reorder",
      async ({ caller, body }) =>
        jsonOf({ data: serializeRules(await ruleService.reorder(caller, body.ids), caller.role) }),
      bodyOperation({
        operationId: "reorderRules",
        permission: "manage",
        tag: "Auth",
        summary: "Ask the rules in another order",
        description: "Puts the rules of the account into another order.",
        notes: [FORCE],
        body: jsonBody(ReorderRules),
        answers: { 200: { description: "The rules.", schema: RuleList } },
      }),
    )
    .patch(
      "/v1/rules/:id",
      async ({ caller, params, body }) => {
        const { row, position } = await ruleService.change(caller, params.id, body);
        return jsonOf(serializeRule(row, position, caller.role));
      },
      bodyOperation({
        operationId: "changeRule",
        permission: "manage",
        tag: "Auth",
        summary: "Change a rule",
        description: "Changes what is given of a rule.",
        notes: [FORCE],
        params: RuleParams,
        body: jsonBody(ChangeRule),
        answers: { 200: { description: "The rule.", schema: RuleJson } },
      }),
    )
    .delete(
      "/v1/rules/:id",
      async ({ caller, params }) => {
        await ruleService.remove(caller, params.id);
        return new Response(null, { status: 204 });
      },
      operation({
        operationId: "removeRule",
        permission: "manage",
        tag: "Auth",
        summary: "Remove a rule",
        description: "Removes a rule. What it has held goes on waiting for a decision.",
        params: RuleParams,
        answers: { 204: { description: "There is no such rule any more.", schema: null } },
      }),
    );
}
