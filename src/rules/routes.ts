import Type from "typebox";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent, prefersNdjson, toStream } from "../http/response.ts";
import { type WaitingDeps, whileWaiting } from "../http/sse.ts";
import type { RuleRow } from "../core/account-rules.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import type { Caller } from "../core/roles.ts";
import { DRY_RUN_ACTIONS_DEFAULT, IDLE_EXPORT_SECONDS } from "../core/limits.ts";
import {
  ChangeRuleBody,
  CreateRuleBody,
  DryRunJson,
  DryRunRulesBody,
  ReorderRulesBody,
  ReplaceRulesBody,
  ruleIdSchema,
  RuleJson,
  RuleListJson,
  serializeRule,
  serializeRules,
} from "./schemas.ts";
import type { DryRunStep } from "./dry-run.ts";
import type { RuleService } from "./service.ts";

export const RuleParams = pathParams(Type.Object({ id: ruleIdSchema }), "There is no such rule.");

const FORCE =
  "Every create that is answered later is decided by it, on every node. What was accepted before is checked again: a rule that holds it applies until it is first sent, one that refuses it before every attempt.";

const TRIED =
  "It is saved as it is, and tried on the newest 100 requests: `warnings` say what is probably wrong with it.";

const NDJSON = { "content-type": "application/x-ndjson", "cache-control": "no-store" } as const;

/** The rules of an account: what is held, refused or allowed. */
export function ruleRoutes(deps: WaitingDeps & { readonly ruleService: RuleService }) {
  const { ruleService } = deps;
  const rulesJson = (caller: Caller, rows: readonly RuleRow[]) =>
    jsonResponse({ data: serializeRules(rows, caller.role, ruleService.warnings(caller)) });
  return createApiRoutes()
    .get(
      "/v1/rules",
      async ({ caller }) => rulesJson(caller, await ruleService.list(caller)),
      operation({
        operationId: "listRules",
        permission: "read",
        tag: "Auth",
        summary: "List the rules that decide what is held or refused",
        description: "Lists the rules of the account, in the order in which they are asked.",
        notes: ["The first that applies to a request decides. Agents and readers see names, effects and messages."],
        answers: { 200: { description: "The rules.", schema: RuleListJson } },
      }),
    )
    .post(
      "/v1/rules",
      async ({ caller, body: { before = null, ...definition } }) => {
        return jsonResponse(serializeRule(await ruleService.add(caller, definition, before), caller.role), 201);
      },
      operation({
        operationId: "createRule",
        permission: "manage",
        tag: "Auth",
        summary: "Add a rule",
        description: "Adds a rule behind all others, or before one of them.",
        notes: [FORCE, TRIED],
        body: jsonBody(CreateRuleBody),
        answers: { 201: { description: "The rule.", schema: RuleJson } },
      }),
    )
    .put(
      "/v1/rules",
      async ({ caller, body }) => rulesJson(caller, await ruleService.replaceAll(caller, body.rules)),
      operation({
        operationId: "replaceRules",
        permission: "manage",
        tag: "Auth",
        summary: "Replace all rules at once",
        description: "Puts these rules in force in place of all others, in one step.",
        notes: ["A rule of the same name as before keeps its id.", FORCE],
        body: jsonBody(ReplaceRulesBody),
        answers: { 200: { description: "The rules.", schema: RuleListJson } },
      }),
    )
    .post(
      "/v1/rules/reorder",
      async ({ caller, body }) => rulesJson(caller, await ruleService.reorder(caller, body.ids)),
      operation({
        operationId: "reorderRules",
        permission: "manage",
        tag: "Auth",
        summary: "Ask the rules in another order",
        description: "Puts the rules of the account into another order.",
        notes: [FORCE],
        body: jsonBody(ReorderRulesBody),
        answers: { 200: { description: "The rules.", schema: RuleListJson } },
      }),
    )
    .post(
      "/v1/rules/dry-run",
      async ({ context, caller, body: { rules = null, last = DRY_RUN_ACTIONS_DEFAULT, since } }) => {
        const range = { last, since: since === undefined ? null : new Date(since) };
        // A leap second has the format, but JavaScript has none.
        if (Number.isNaN(range.since?.getTime())) throw invalidField("since", "Is not a date and time.");
        const steps = await ruleService.dryRun(caller, rules, range);
        if (prefersNdjson(context.request)) {
          context.server?.timeout(context.request, IDLE_EXPORT_SECONDS);
          const lines = await toStream(dryRunLines(steps, deps.draining));
          context.kind = "stream";
          return new Response(lines, { headers: NDJSON });
        }
        return whileWaiting(context, deps, async (stop) => {
          for await (const step of steps) {
            if ("differences" in step) return jsonResponse(step);
            if (stop.aborted) break;
          }
          throw new DomainError("unavailable", "The service is stopping. Try the rules again.");
        });
      },
      operation({
        operationId: "dryRunRules",
        permission: "approve",
        tag: "Auth",
        summary: "Try rules on what was requested before",
        description:
          "Tells what rules would have done with the newest actions, and what differs from the rules in force. It changes nothing.",
        notes: [
          "Each action is judged as it is stored, at the time at which it was created; for approvers, as they see it, with its secrets masked.",
          "With `Accept: application/x-ndjson` the answer is lines: how far it has come, and the result as the last one.",
        ],
        body: jsonBody(DryRunRulesBody),
        answers: { 200: { description: "What they would have done.", schema: DryRunJson } },
      }),
    )
    .patch(
      "/v1/rules/:id",
      async ({ caller, params, body }) => {
        return jsonResponse(serializeRule(await ruleService.change(caller, params.id, body), caller.role));
      },
      operation({
        operationId: "changeRule",
        permission: "manage",
        tag: "Auth",
        summary: "Change a rule",
        description: "Changes what is given of a rule.",
        notes: [FORCE, TRIED],
        params: RuleParams,
        body: jsonBody(ChangeRuleBody),
        answers: { 200: { description: "The rule.", schema: RuleJson } },
      }),
    )
    .delete(
      "/v1/rules/:id",
      ({ caller, params }) => noContent(ruleService.remove(caller, params.id)),
      operation({
        operationId: "removeRule",
        permission: "manage",
        tag: "Auth",
        summary: "Remove a rule",
        description: "Removes a rule. What it has held still awaits a decision.",
        params: RuleParams,
        answers: { 204: { description: "This rule no longer exists.", schema: null } },
      }),
    );
}

async function* dryRunLines(steps: AsyncGenerator<DryRunStep>, draining: AbortSignal): AsyncGenerator<string> {
  for await (const step of steps) {
    if (draining.aborted) throw new DomainError("unavailable", "The service is stopping.");
    yield `${JSON.stringify(step)}\n`;
  }
}
