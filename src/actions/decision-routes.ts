import Type from "typebox";
import { actionIdSchema, Status } from "../api/action-schemas.ts";
import type { ActionService } from "./service.ts";
import { DECISIONS } from "../core/action.ts";
import { plainText, reason, run, choice } from "../api/schema-helpers.ts";
import { DECISIONS_AT_ONCE_MAX, DIGEST_CHARS_MAX } from "../core/limits.ts";
import { jsonResponse } from "../http/response.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";

const ShownRequestJson = Type.Object(
  {
    id: actionIdSchema,
    run: run("The run that was shown."),
    digest: Type.String({
      minLength: 1,
      maxLength: DIGEST_CHARS_MAX,
      description: "The digest of GET /v1/actions/{id}/facts.",
      examples: ["9f86d081884c7d659a2feaa0c55ad015"],
    }),
  },
  { title: "ShownRequest", additionalProperties: false, description: "A held request, as it was shown." },
);

/** The body of `POST /v1/approvals`. */
export const DecideRequestsBody = Type.Object(
  {
    decision: choice(DECISIONS, "For all of them.", "approve"),
    reason: Type.Optional(reason("Why; shown in the timeline of each.")),
    requests: Type.Array(ShownRequestJson, {
      minItems: 1,
      maxItems: DECISIONS_AT_ONCE_MAX,
      description: "The requests, as they were shown.",
    }),
  },
  { title: "DecideRequests", additionalProperties: false, description: "A decision on several held requests." },
);

export const RequestDecisionsJson = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          id: actionIdSchema,
          status: Type.Optional(Status),
          error: Type.Optional(
            Type.Object(
              {
                code: plainText("Error code of the single decision.", "not_approvable"),
                message: plainText(
                  "Why it was refused.",
                  "Action act_1 no longer awaits this decision: it is cancelled by now.",
                ),
              },
              { description: "Why it was refused; absent if it was decided." },
            ),
          ),
        },
        { title: "RequestDecision", description: "What became of one request: its status, or an error." },
      ),
      { description: "One for each request, in their order." },
    ),
  },
  { title: "RequestDecisions", description: "What became of each request." },
);

/** /v1/approvals. */
export function approvalRoutes({ actionService }: { readonly actionService: Pick<ActionService, "decideMany"> }) {
  return createApiRoutes().post(
    "/v1/approvals",
    async ({ caller, body: { decision, reason: why = null, requests } }) =>
      jsonResponse({ data: await actionService.decideMany(caller, { decision, reason: why }, requests) }),
    operation({
      operationId: "decideRequests",
      permission: "approve",
      tag: "Actions",
      summary: "Approve or reject several held requests",
      description: "Decides on exactly the requests that were shown.",
      notes: [
        "One that is in another run by now, has another digest or was decided meanwhile is refused by itself.",
        "The response is always 200, with a result for each.",
      ],
      body: jsonBody(DecideRequestsBody),
      answers: { 200: { description: "What became of each.", schema: RequestDecisionsJson } },
    }),
  );
}
