import Type from "typebox";
import { credentialNameSchema } from "../api/action-schemas.ts";
import type { Credential } from "../core/credential.ts";
import type { Caller } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";
import {
  ChangeCredential,
  CreateCredential,
  CredentialJson,
  CredentialListJson,
  CredentialTest,
  serializeCredential,
  TestCredential,
} from "./schemas.ts";
import type { CredentialService } from "./service.ts";
import type { CredentialTestService } from "./try.ts";
import { NO_USES } from "./uses.ts";

export const CredentialParams = pathParams(Type.Object({ name: credentialNameSchema }), "There is no such credential.");

interface CredentialRouteDeps {
  readonly credentialService: CredentialService;
  readonly credentialTests: CredentialTestService;
}

/** What calls can be made with, of which nobody reads the secret back. */
export function credentialRoutes({ credentialService, credentialTests }: CredentialRouteDeps) {
  const shown = async (caller: Caller, credential: Credential) =>
    jsonOf(serializeCredential(credential, await credentialService.uses(caller)));
  return createApiRoutes()
    .get(
      "/v1/credentials",
      async ({ caller }) => {
        const [all, uses] = await Promise.all([credentialService.list(caller), credentialService.uses(caller)]);
        return jsonOf({ data: all.map((one) => serializeCredential(one, uses)) });
      },
      operation({
        operationId: "listCredentials",
        permission: "read",
        summary: "List the credentials that calls can be made with",
        description: "Lists credentials by name, without their secrets.",
        notes: ["An agent's key sees those that it may use: their names, kinds and bounds."],
        answers: { 200: { description: "The credentials.", schema: CredentialListJson } },
      }),
    )
    .post(
      "/v1/credentials",
      async ({ caller, body }) => jsonOf(serializeCredential(await credentialService.add(caller, body), NO_USES), 201),
      operation({
        operationId: "createCredential",
        permission: "manage",
        summary: "Add a credential",
        description:
          "Stores a secret, sealed, with where it may go. Calls name it, and Outgate adds it when they are sent.",
        notes: ["Nobody reads the secret back.", "Agents' keys use it once it lists them."],
        body: jsonBody(CreateCredential),
        answers: { 201: { description: "The credential.", schema: CredentialJson } },
      }),
    )
    .get(
      "/v1/credentials/:name",
      async ({ caller, params }) => shown(caller, await credentialService.find(caller, params.name)),
      operation({
        operationId: "getCredential",
        permission: "read",
        summary: "Get a credential",
        description: "Shows a credential without its secret.",
        params: CredentialParams,
        answers: { 200: { description: "The credential.", schema: CredentialJson } },
      }),
    )
    .patch(
      "/v1/credentials/:name",
      async ({ caller, params, body }) => shown(caller, await credentialService.change(caller, params.name, body)),
      operation({
        operationId: "changeCredential",
        permission: "manage",
        summary: "Replace the secret of a credential, change its bounds, or disable it",
        description: "Changes what the request names; what is left out stays.",
        notes: [
          "A new secret is used by the next send, and needs no new approval. The old one is gone.",
          "Bounds are checked again at every send.",
        ],
        params: CredentialParams,
        body: jsonBody(ChangeCredential),
        answers: { 200: { description: "The credential.", schema: CredentialJson } },
      }),
    )
    .delete(
      "/v1/credentials/:name",
      ({ caller, params }) => noContent(credentialService.remove(caller, params.name)),
      operation({
        operationId: "removeCredential",
        permission: "manage",
        summary: "Delete a credential",
        description: "Deletes a credential with its secret.",
        notes: ["What waits with it fails when it is to be sent, also if another one gets the same name."],
        params: CredentialParams,
        answers: { 204: { description: "The credential is gone.", schema: null } },
      }),
    )
    .post(
      "/v1/credentials/:name/test",
      async ({ caller, params, body }) => jsonOf(await credentialTests.test(caller, params.name, body.url)),
      operation({
        operationId: "testCredential",
        permission: "manage",
        summary: "Try a credential",
        description: "Sends a GET with the credential at once, and shows the beginning of its answer, masked.",
        notes: [
          "The URL must lie within the bounds of the credential. It waits for at most 10 seconds, and follows no redirect.",
          "Keys with `hold: all` get 403, and so does a host whose calls are paused.",
          "At most one try a second and 30 an hour.",
        ],
        params: CredentialParams,
        body: jsonBody(TestCredential),
        answers: { 200: { description: "What was answered.", schema: CredentialTest } },
      }),
    );
}
