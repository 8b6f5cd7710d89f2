import Type from "typebox";
import { createApiRoutes, jsonBody, operation, optionalBody, pathParams } from "../http/operation.ts";
import { NoBody } from "../api/schema-helpers.ts";
import { jsonOf, noContent } from "../http/response.ts";
import type { OAuthClientService } from "./account-clients.ts";
import {
  CreateOAuthClient,
  NewOAuthClientJson,
  OAuthClientId,
  OAuthClientListJson,
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
        summary: "List the OAuth clients of the account",
        description: "Lists the clients that owners have added, without their secrets.",
        notes: ["Clients with a metadata document, or that registered themselves, belong to no account."],
        answers: { 200: { description: "The clients.", schema: OAuthClientListJson } },
      }),
    )
    .post(
      "/v1/oauth-clients",
      async ({ caller, body }) => jsonOf(serializeNewOAuthClient(await oauthClients.add(caller, body)), 201),
      operation({
        operationId: "createOAuthClient",
        permission: "manage",
        summary: "Add an OAuth client",
        description: "Adds a client for software that has no metadata document. People of the account connect it.",
        notes: ["The answer shows the secret of a confidential client once."],
        body: jsonBody(CreateOAuthClient),
        answers: { 201: { description: "The client, with its secret.", schema: NewOAuthClientJson } },
      }),
    )
    .post(
      "/v1/oauth-clients/:id/secret",
      async ({ caller, params }) =>
        jsonOf(serializeNewOAuthClient(await oauthClients.replaceSecret(caller, params.id)), 200, {
          "cache-control": "no-store",
        }),
      operation({
        operationId: "replaceOAuthClientSecret",
        permission: "manage",
        summary: "Replace the secret of an OAuth client",
        description: "Gives a confidential client a new secret. Only this response shows it. Takes no body.",
        notes: [
          "The old secret is refused at once. Connections stay: the client needs the new secret for its next token.",
          "A public client has no secret: it gets 400.",
        ],
        params: OAuthClientParams,
        body: optionalBody(NoBody),
        answers: {
          200: {
            description: "The client, with its new secret.",
            schema: NewOAuthClientJson,
            headers: ["Cache-Control"],
          },
        },
      }),
    )
    .delete(
      "/v1/oauth-clients/:id",
      ({ caller, params }) => noContent(oauthClients.remove(caller, params.id)),
      operation({
        operationId: "removeOAuthClient",
        permission: "manage",
        summary: "Delete an OAuth client",
        description: "Deletes a client and ends its connections: their keys are revoked.",
        notes: ["What its connections have left unfinished stays."],
        params: OAuthClientParams,
        answers: { 204: { description: "The client is gone.", schema: null } },
      }),
    );
}
