import {
  pauseIdSchema,
  CreatePause,
  PauseJson,
  PauseListJson,
  checkPausedHost,
  serializePause,
} from "../api/pause-schemas.ts";
import Type from "typebox";
import type { PauseService } from "./service.ts";
import { jsonOf, noContent } from "../http/response.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";

interface PauseRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
}

export const PauseParams = pathParams(Type.Object({ id: pauseIdSchema }), "There is no such pause.");

export function pauseRoutes({ pauseService }: PauseRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/pauses",
      async ({ caller }) => jsonOf({ data: (await pauseService.list(caller)).map(serializePause) }),
      operation({
        operationId: "listPauses",
        permission: "manage",
        summary: "List the pauses in force",
        description: "Lists the pauses in force, oldest first.",
        notes: ["The audit log has earlier pauses."],
        answers: { 200: { description: "The pauses in force.", schema: PauseListJson } },
      }),
    )
    .post(
      "/v1/pauses",
      async ({ caller, body: { key_id: keyId = null, host, reason = null } }) => {
        const asked = { keyId, host: host === undefined ? null : checkPausedHost(host, keyId), reason };
        const { pause, isNew } = await pauseService.pause(caller, asked);
        return jsonOf(serializePause(pause), isNew ? 201 : 200);
      },
      operation({
        operationId: "createPause",
        permission: "manage",
        summary: "Pause sending for the account, for one key or to one host",
        description: "Stops new attempts: none starts after the response.",
        notes: [
          "Attempts under way end as usual. Actions can still be created, and wait.",
          "Where a pause is in force already, it is returned with 200.",
        ],
        body: jsonBody(CreatePause),
        answers: {
          201: { description: "The pause. No attempt that it covers is started any more.", schema: PauseJson },
          200: { description: "The pause that was in force already.", schema: PauseJson },
        },
        errors: ["not_found"],
      }),
    )
    .delete(
      "/v1/pauses/:id",
      ({ caller, params }) => noContent(pauseService.resume(caller, params.id)),
      operation({
        operationId: "endPause",
        permission: "manage",
        summary: "End a pause",
        description: "Ends a pause. Waiting actions that are due are sent at once.",
        notes: ["Ending an ended pause returns 204 again."],
        params: PauseParams,
        answers: { 204: { description: "The pause has ended.", schema: null } },
      }),
    );
}
