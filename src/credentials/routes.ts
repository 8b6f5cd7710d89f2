import Type, { type Static } from "typebox";
import { CredentialKindName, credentialNameSchema } from "../api/action-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import type { Credential } from "../core/credential.ts";
import { CREDENTIALS_MAX } from "../core/limits.ts";
import type { Caller } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { headersOfCredential } from "./kinds.ts";
import {
  ChangeCredentialBody,
  CreateCredentialBody,
  CredentialTestJson,
  headerName,
  members,
  TestCredentialBody,
} from "./schemas.ts";
import { boundWarnings } from "./bounds.ts";
import { type CredentialService, type CredentialUses, usesByDay, NO_USES, sumOf } from "./service.ts";

const given = CreateCredentialBody.properties;

export const CredentialJson = t.answerObject("Credential", "A credential, without its secret.", {
  name: credentialNameSchema,
  kind: CredentialKindName,
  header: Type.Optional(headerName("The header that it sets.", "Authorization")),
  hosts: members.hosts,
  paths: given.paths,
  methods: given.methods,
  enabled: members.enabled,
  expires_at: t.nullable(members.expires_at),
  id: Type.Optional(t.idSchema("crd", "Id of the credential. For owners, as all below.")),
  scheme: given.scheme,
  username: given.username,
  hmac: given.hmac,
  last4: Type.Optional(t.nullable(t.plainText("The last four characters of the secret, if it is long.", "4242"))),
  keys: given.keys,
  created_at: Type.Optional(t.dateTime("When it was added.")),
  created_by: Type.Optional(t.plainText("Who added it.", "user:ann@example.com")),
  replaced_at: Type.Optional(t.dateTime("When its secret was set last.")),
  last_used_at: Type.Optional(t.nullable(t.dateTime("When it was last sent."))),
  uses_last_week: Type.Optional(
    Type.Integer({
      description:
        "How often it was sent in the last 7 days, with retries and tries. Counted are the newest 10,000 entries of the audit log.",
      examples: [12],
    }),
  ),
  echoed_by: Type.Optional(
    Type.Array(t.plainText("A host.", "api.example.com"), {
      description: "Hosts that have sent the secret back in an answer, in which it was masked.",
      examples: [["api.example.com"]],
    }),
  ),
  warnings: Type.Optional(
    Type.Array(t.plainText("A sentence.", "Its bounds include Stripe's /v1/api_keys."), {
      description: "What is risky about its bounds.",
      examples: [["Its bounds include Stripe's /v1/api_keys, where answers hold a new secret."]],
    }),
  ),
});

type CredentialJson = Static<typeof CredentialJson>;

export const CredentialListJson = t.answerObject("CredentialList", "The credentials that the caller may know.", {
  data: Type.Array(CredentialJson, { description: `By name; at most ${CREDENTIALS_MAX}.` }),
});

/** A credential as JSON. `uses`: for owners; null: the smaller view for all others. */
export function serializeCredential(credential: Credential, uses: CredentialUses | null): CredentialJson {
  const { id, name, settings, hosts, paths, methods, expiresAt } = credential;
  const [header = "Authorization"] = headersOfCredential(settings);
  const shown = { name, kind: settings.kind, header, hosts, paths, methods, enabled: credential.enabled, expiresAt };
  if (uses === null) return toJson(CredentialJson, shown);
  return toJson(CredentialJson, {
    ...credential,
    ...shown,
    ...(settings.kind === "header" && { scheme: settings.scheme }),
    ...(settings.kind === "basic" && { username: settings.username }),
    ...(settings.kind === "hmac" && { hmac: settings }),
    last4: credential.hint,
    usesLastWeek: sumOf(usesByDay(uses, id)),
    echoedBy: credential.echoes,
    warnings: boundWarnings(credential),
  });
}

export const CredentialParams = pathParams(Type.Object({ name: credentialNameSchema }), "There is no such credential.");

export function credentialRoutes({ credentialService }: { readonly credentialService: CredentialService }) {
  const shown = async (caller: Caller, credential: Credential) =>
    jsonResponse(serializeCredential(credential, await credentialService.uses(caller)));
  return createApiRoutes()
    .get(
      "/v1/credentials",
      async ({ caller }) => {
        const [all, uses] = await Promise.all([credentialService.list(caller), credentialService.uses(caller)]);
        return jsonResponse({ data: all.map((one) => serializeCredential(one, uses)) });
      },
      operation({
        operationId: "listCredentials",
        permission: "read",
        summary: "List the credentials that calls can be made with",
        description:
          "Lists credentials by name, without their secrets. An agent's key sees those that it may use: their names, kinds and bounds.",
        answers: { 200: { description: "The credentials.", schema: CredentialListJson } },
      }),
    )
    .post(
      "/v1/credentials",
      async ({ caller, body }) =>
        jsonResponse(serializeCredential(await credentialService.add(caller, body), NO_USES), 201),
      operation({
        operationId: "createCredential",
        permission: "manage",
        summary: "Add a credential",
        description:
          "Stores a secret, sealed, with where it may go. Calls name it, and Outgate adds it when they are sent.",
        notes: ["No one can read the secret back.", "Agents' keys use it once it lists them."],
        body: jsonBody(CreateCredentialBody),
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
        body: jsonBody(ChangeCredentialBody),
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
        description:
          "Deletes a credential with its secret. What waits with it fails when it is to be sent, also if another one gets the same name.",
        params: CredentialParams,
        answers: { 204: { description: "The credential is gone.", schema: null } },
      }),
    )
    .post(
      "/v1/credentials/:name/test",
      async ({ caller, params, body }) => jsonResponse(await credentialService.test(caller, params.name, body.url)),
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
        body: jsonBody(TestCredentialBody),
        answers: { 200: { description: "What was answered.", schema: CredentialTestJson } },
      }),
    );
}
