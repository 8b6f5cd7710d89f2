import Type from "typebox";
import { checkListQuery } from "../api/schema-helpers.ts";
import type { Clock } from "../core/clock.ts";
import { CREDENTIAL_REQUEST_ID } from "../core/ids.ts";
import {
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  LIST_LIMIT_DEFAULT,
} from "../core/limits.ts";
import { createApiRoutes, jsonBody, operation, optionalBody, pathParams } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import {
  AskCredentialBody,
  credentialRequestIdSchema,
  CredentialRequestJson,
  CredentialRequestPageJson,
  CredentialRequestParameters,
  DeclineCredential,
  requestPageJson,
  serializeRequest,
} from "./request-schemas.ts";
import type { CredentialRequestService } from "./requests.ts";
import { CreateCredential } from "./schemas.ts";

export const CredentialRequestParams = pathParams(
  Type.Object({ id: credentialRequestIdSchema }),
  "There is no such request for a credential.",
);

interface CredentialRequestRouteDeps {
  readonly credentialRequests: CredentialRequestService;
  readonly clock: Pick<Clock, "now">;
}

/** What agents ask for, and owners answer: a link decides nothing here, since the answer is a secret. */
export function credentialRequestRoutes({ credentialRequests, clock }: CredentialRequestRouteDeps) {
  return createApiRoutes()
    .post(
      "/v1/credential-requests",
      async ({ caller, body }) => {
        const { request, isNew } = await credentialRequests.ask(caller, body);
        return jsonOf(serializeRequest(caller, request, clock.now()), isNew ? 201 : 200);
      },
      operation({
        operationId: "askCredential",
        permission: "create",
        summary: "Ask for a credential",
        description: "Asks the owners of the account to fill in a secret for a host. They fill it in, or decline.",
        notes: [
          "It stands on the page Approvals for 7 days, and ends with its key. Read it again for the answer: with `granted` the key may use `credential`.",
          "A key has one open request for a host: asking again returns it with 200, and for 24 hours after a no the same request returns that.",
          `A key may have ${CREDENTIAL_REQUESTS_PER_KEY_MAX} open requests and ask ${CREDENTIAL_REQUESTS_PER_DAY_MAX} times within 24 hours; an account may have ${CREDENTIAL_REQUESTS_PENDING_MAX} open ones.`,
        ],
        body: jsonBody(AskCredentialBody),
        answers: {
          201: { description: "The new request.", schema: CredentialRequestJson },
          200: { description: "The request that this key has made before.", schema: CredentialRequestJson },
        },
        errors: ["too_many_held"],
      }),
    )
    .get(
      "/v1/credential-requests",
      async ({ caller, query }) => {
        const now = clock.now();
        const limit = query.limit ?? LIST_LIMIT_DEFAULT;
        const { before } = checkListQuery({}, query.cursor, CREDENTIAL_REQUEST_ID);
        const { status = null } = query;
        const isPaged = status !== "pending";
        const found = isPaged
          ? await credentialRequests.list(caller, { status, before, limit })
          : await credentialRequests.pending(caller);
        const data = found.map((one) => serializeRequest(caller, one, now));
        return jsonOf(requestPageJson(data, isPaged ? limit : data.length));
      },
      operation({
        operationId: "listCredentialRequests",
        permission: "read",
        summary: "List requests for credentials",
        description: "Lists requests for credentials, newest first.",
        notes: ["An agent's key sees its own.", "They are kept for 30 days after the time at which they expire."],
        query: CredentialRequestParameters,
        answers: { 200: { description: "A page of requests.", schema: CredentialRequestPageJson } },
      }),
    )
    .get(
      "/v1/credential-requests/:id",
      async ({ caller, params }) =>
        jsonOf(serializeRequest(caller, await credentialRequests.find(caller, params.id), clock.now())),
      operation({
        operationId: "getCredentialRequest",
        permission: "read",
        summary: "Get a request for a credential",
        description: "Shows a request, and what has become of it.",
        params: CredentialRequestParams,
        answers: { 200: { description: "The request.", schema: CredentialRequestJson } },
      }),
    )
    .post(
      "/v1/credential-requests/:id/grant",
      async ({ caller, params, body }) => {
        await credentialRequests.grant(caller, params.id, body);
        return jsonOf(serializeRequest(caller, await credentialRequests.find(caller, params.id), clock.now()));
      },
      operation({
        operationId: "grantCredentialRequest",
        permission: "manage",
        summary: "Fill in a credential that a key asks for",
        description: "Adds a credential, as createCredential does, that the asking key may use at once.",
        notes: ["What the key has suggested counts for nothing: name the hosts, paths and methods that you allow."],
        params: CredentialRequestParams,
        body: jsonBody(CreateCredential),
        answers: {
          200: { description: "The request, with the name of the credential.", schema: CredentialRequestJson },
        },
        errors: ["not_approvable"],
      }),
    )
    .post(
      "/v1/credential-requests/:id/decline",
      async ({ caller, params, body }) =>
        jsonOf(
          serializeRequest(
            caller,
            await credentialRequests.decline(caller, params.id, body.reason ?? null),
            clock.now(),
          ),
        ),
      operation({
        operationId: "declineCredentialRequest",
        permission: "manage",
        summary: "Decline a request for a credential",
        description: "Ends a request. Its key reads the reason.",
        params: CredentialRequestParams,
        body: optionalBody(DeclineCredential),
        answers: { 200: { description: "The request.", schema: CredentialRequestJson } },
        errors: ["not_approvable"],
      }),
    );
}
