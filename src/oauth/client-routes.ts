import Type from "typebox";
import { bodyOperation, createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import type { OAuthClientService } from "./account-clients.ts";
import {
  CreateOAuthClient,
  NewOAuthClientJson,
  OAuthClientId,
  OAuthClientList,
  serializeNewOAuthClient,
  serializeOAuthClient,
} from "./schemas.ts";

export const OAuthClientParams = pathParams(Type.Object({ id: OAuthClientId }), "There is no such client.");

/** Clients of OAuth that owners add by hand. */
export function oauthClientRoutes({ oauthClients }: { readonly oauthClients: OAuthClientService }) {
  return createApiRoutes()
    .get(
      "/v1/oauth-clients",
      async ({ caller }) => jsonOf({ data: (await oauthClients.list(caller)).map(serializeOAuthClient) }),
      operation({
        operationId: "listOAuthClients",
        permission: "manage",
        tag: "Auth",
        summary: "List the OAuth clients of the account",
        description: "Lists the clients that owners have added, without their secrets.",
        notes: ["Clients with a metadata document, or that registered themselves, belong to no account."],
        answers: { 200: { description: "The clients.", schema: OAuthClientList } },
      }),
    )
    .post(
      "/v1/oauth-clients",
      async ({ caller, body }) => jsonOf(serializeNewOAuthClient(await oauthClients.add(caller, body)), 201),
      bodyOperation({
        operationId: "createOAuthClient",
        permission: "manage",
        tag: "Auth",
        summary: "Add an OAuth client",
        description: "Adds a client for software that has no metadata document. People of the account connect it.",
        notes: ["The answer shows the secret of a confidential client once."],
        body: jsonBody(CreateOAuthClient),
        answers: { 201: { description: "The client, with its secret.", schema: NewOAuthClientJson } },
      }),
    )
    .delete(
      "/v1/oauth-clients/:id",
      async ({ caller, params }) => {
        await oauthClients.remove(caller, params.id);
        return new Response(null, { status: 204 });
      },
      operation({
        operationId: "removeOAuthClient",
        permission: "manage",
        tag: "Auth",
        summary: "Delete an OAuth client",
        description: "Deletes a client and ends its connections: their keys are revoked.",
        notes: ["What its connections have left unfinished stays."],
        params: OAuthClientParams,
        answers: { 204: { description: "The client is gone.", schema: null } },
      }),
    );
}
