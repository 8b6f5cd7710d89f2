import {
  RevokeQuery,
  AccountId,
  AccountJson,
  type AccountLimits,
  AccountListJson,
  ChangeAccount,
  CreatedKeyJson,
  CreateKey,
  MadeByQuery,
  RevokedKeyJson,
  serializeRevokedKey,
  serializeAccount,
  serializeKey,
  serializeListedAccount,
  KeyListJson,
  serializeListedKey,
} from "./schemas.ts";
import { keyIdSchema, NoBody } from "../api/schema-helpers.ts";
import { CALLBACK_HOSTS_MAX, LIVE_KEYS_MAX } from "../core/limits.ts";
import Type from "typebox";
import type { PeopleService } from "./people.ts";
import { createApiRoutes, jsonBody, operation, optionalBody, pathParams } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";
import {
  serializeOrigin,
  SigningOriginListJson,
  checkOrigin,
  RotateQuery,
  RotationJson,
  serializeRotation,
  serializeSigningSecret,
  SigningSecretJson,
  SigningSecretParameters,
  type SigningService,
} from "./signing-secrets.ts";
import type { Caller } from "../core/roles.ts";
import type { KeyService } from "./keys.ts";
import {
  AddCallbackHost,
  CallbackHostJson,
  CallbackHostListJson,
  type CallbackHostService,
  checkCallbackHost,
  RemoveCallbackHostQuery,
  serializeCallbackHost,
} from "./callback-hosts.ts";
import {
  receivedIn,
  serializeCheck,
  SignatureCheckJson,
  VerifySignatureBody,
  type VerifyService,
} from "./verify-signature.ts";
import {
  CallbackTestJson,
  type CallbackTestService,
  serializeCallbackTest,
  TestCallbackBody,
} from "./callback-test.ts";
import { type FirstStepRouteDeps, firstStepRoutes } from "./first-steps.ts";
import { type ServerRouteDeps, serverRoutes } from "./server-routes.ts";
import type { SignUpGate } from "./sign-up-gate.ts";

interface AccountRouteDeps extends FirstStepRouteDeps, ServerRouteDeps {
  readonly peopleService: Pick<PeopleService, "readAccount" | "renameAccount">;
  readonly limits: AccountLimits;
  readonly keyService: KeyService;
  readonly callbackHosts: CallbackHostService;
  readonly callbackTests: CallbackTestService;
  readonly signingService: SigningService;
  readonly verifyService: VerifyService;
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy" | "isOperator" | "requireOperator">;
}

/** The account of the caller, its keys, callback hosts, signing secrets and first steps, the accounts of the service, and its settings. */
export function accountRoutes(deps: AccountRouteDeps) {
  const { peopleService, limits } = deps;
  const accountOf = async (caller: Caller) =>
    jsonOf(serializeAccount(await peopleService.readAccount(caller), caller, limits));
  const ownAccount = createApiRoutes()
    .get(
      "/v1/account",
      ({ caller }) => accountOf(caller),
      operation({
        operationId: "getAccount",
        permission: "read",
        summary: "Get the account, key, role and limits of the caller",
        description: "Shows what the key of the request may do, and its limits.",
        answers: { 200: { description: "The account, and the key of the request.", schema: AccountJson } },
      }),
    )
    .patch(
      "/v1/account",
      async ({ caller, body: { name } }) => {
        await peopleService.renameAccount(caller, name);
        return accountOf(caller);
      },
      operation({
        operationId: "changeAccount",
        permission: "manage",
        summary: "Name the account",
        description: "Everyone in the account sees its name, and everyone who is invited.",
        notes: ["An account without a name is shown by the address of its first person."],
        body: jsonBody(ChangeAccount),
        answers: { 200: { description: "The account with its name.", schema: AccountJson } },
      }),
    );
  return [
    ownAccount,
    keyRoutes(deps),
    callbackHostRoutes(deps),
    callbackTestRoutes(deps),
    signingSecretRoutes(deps),
    verifyRoutes(deps),
    accountsRoutes(deps),
    firstStepRoutes(deps),
    serverRoutes(deps),
  ] as const;
}

/** The key in the path of a route. */
export const KeyParams = pathParams(Type.Object({ id: keyIdSchema }), "There is no such key.");

const REVOKE_NOTES = [
  "Revoking a revoked key returns it again.",
  "Its held actions stay held; their approvers see that the key was revoked, by whom and when.",
  "Keys and invitations that an owner key made are found by `created_by`. Its open invitations are void, unless another owner key replaces it.",
] as const;

function keyRoutes({ keyService }: AccountRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/keys",
      async ({ caller, query: { created_by: createdBy } }) =>
        jsonOf({ data: (await keyService.listWithUse(caller, createdBy)).map(serializeListedKey) }),
      operation({
        operationId: "listKeys",
        permission: "manage",
        summary: "List the account's keys",
        description: "Lists live keys first, then revoked ones, with their limits and what they have done.",
        notes: ["The secret keys themselves are never shown."],
        query: MadeByQuery,
        answers: { 200: { description: "The keys.", schema: KeyListJson } },
      }),
    )
    .post(
      "/v1/keys",
      async ({ caller, body }) => {
        const { row, key } = await keyService.create(caller, body);
        return jsonOf({ ...serializeKey(row), key }, 201, { "cache-control": "no-store" });
      },
      operation({
        operationId: "createKey",
        permission: "manage",
        summary: "Create a key; it is shown once",
        description: "Creates a key. Only this response shows it.",
        notes: [
          "A key that replaces another acts on what that key created. It has each of its limits that the request leaves out, unless `inherit_limits` is false.",
          "A create or retry beyond a limit gets 403.",
          `An account can have ${LIVE_KEYS_MAX} live keys; a further one gets 409.`,
          "The first key with a hold in the first account closes sign-ups, unless SIGNUPS is open.",
        ],
        body: jsonBody(CreateKey),
        answers: { 201: { description: "The new key.", schema: CreatedKeyJson, headers: ["Cache-Control"] } },
        errors: ["too_many_keys"],
      }),
    )
    .delete(
      "/v1/keys/:id",
      async ({ caller, params: { id }, query: { unfinished } }) => {
        return jsonOf(serializeRevokedKey(await keyService.revoke(caller, id, unfinished)));
      },
      operation({
        operationId: "revokeKey",
        permission: "manage",
        summary: "Revoke a key",
        description: "Revokes a key at once, also for open streams and sessions.",
        notes: REVOKE_NOTES,
        params: KeyParams,
        query: RevokeQuery,
        answers: { 200: { description: "The revoked key.", schema: RevokedKeyJson } },
      }),
    );
}

/** Where callbacks of keys with a hold or a limit may go, for owners. */
function callbackHostRoutes({ callbackHosts }: AccountRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/callback-hosts",
      async ({ caller }) => jsonOf({ data: (await callbackHosts.list(caller)).map(serializeCallbackHost) }),
      operation({
        operationId: "listCallbackHosts",
        permission: "manage",
        summary: "List the hosts for callbacks of keys with a hold or a limit",
        description: "Lists the hosts that keys with a hold or a limit can use in `callback`.",
        notes: ["Callbacks of keys without a hold and without limits may go to other hosts too."],
        answers: { 200: { description: "The hosts.", schema: CallbackHostListJson } },
      }),
    )
    .post(
      "/v1/callback-hosts",
      async ({ caller, body }) => {
        const host = checkCallbackHost(body.host, "validation_error");
        return jsonOf(serializeCallbackHost(await callbackHosts.add(caller, host)));
      },
      operation({
        operationId: "addCallbackHost",
        permission: "manage",
        summary: "Allow callbacks of keys with a hold or a limit to a host",
        description: "Adds a host to those that a key with a hold or a limit can use in `callback`.",
        notes: ["Adding a listed host changes nothing.", `An account can list up to ${CALLBACK_HOSTS_MAX} hosts.`],
        body: jsonBody(AddCallbackHost),
        answers: { 200: { description: "The host, listed.", schema: CallbackHostJson } },
      }),
    )
    .delete(
      "/v1/callback-hosts",
      ({ caller, query }) => noContent(callbackHosts.remove(caller, checkCallbackHost(query.host, "invalid_query"))),
      operation({
        operationId: "removeCallbackHost",
        permission: "manage",
        summary: "Remove a host from the list for callbacks of keys with a hold or a limit",
        description: "Removes a host at once.",
        notes: ["Waiting callbacks to it are given up at their next attempt, and the timeline says so."],
        query: RemoveCallbackHostQuery,
        answers: { 204: { description: "The host was removed from the list.", schema: null } },
        errors: ["not_found"],
      }),
    );
}

function callbackTestRoutes({ callbackTests }: AccountRouteDeps) {
  return createApiRoutes().post(
    "/v1/callback-hosts/test",
    async ({ caller, body: { url, wrong_signature: withWrong = false } }) =>
      jsonOf(serializeCallbackTest(await callbackTests.test(caller, url, withWrong))),
    operation({
      operationId: "testCallback",
      permission: "manage",
      summary: "Send a test callback to a URL on a listed host",
      description: "Sends a signed test callback to a listed host at once, and waits for at most 10 seconds.",
      notes: [
        "Its body is fixed, and it is signed as every callback.",
        "With `wrong_signature` it then sends another one whose signature is wrong, to see whether the receiver verifies.",
        "Keys with a hold get 403.",
        "At most one test a second and 30 an hour.",
      ],
      body: jsonBody(TestCallbackBody),
      answers: { 200: { description: "How it fared.", schema: CallbackTestJson } },
    }),
  );
}

const SECRET_NOTES = [
  "For 24 hours after a rotation the previous one comes too.",
  "Callbacks have a separate secret: read it with `for=callbacks`.",
] as const;

const ROTATION_NOTES = [
  "Both secrets sign for 24 hours; a second rotation within that time ends the oldest at once.",
  "Without the parameter `origin` every origin gets new secrets, for calls and for callbacks.",
  "With an `origin` it rotates the secret for calls, or with `for=callbacks` the one for callbacks.",
] as const;

function signingSecretRoutes({ signingService }: AccountRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/signing-origins",
      async ({ caller }) => jsonOf({ data: (await signingService.origins(caller)).map(serializeOrigin) }),
      operation({
        operationId: "listSigningOrigins",
        permission: "manage",
        summary: "List the origins whose signing secrets are in use",
        description:
          "Lists where calls and callbacks of the account went, with the newest origin of each host name, and what was rotated.",
        notes: ["It shows no secret: read one with `getSigningSecret`."],
        answers: { 200: { description: "The origins.", schema: SigningOriginListJson } },
      }),
    )
    .get(
      "/v1/signing-secret",
      async ({ context, caller, query: { origin, for: use } }) => {
        const isShown = context.request.method !== "HEAD";
        const secret = await signingService.read(caller, checkOrigin(origin), use, isShown);
        return jsonOf(serializeSigningSecret(secret), 200, { "cache-control": "no-store" });
      },
      operation({
        operationId: "getSigningSecret",
        permission: "manage",
        summary: "Get the secret that signs calls, or callbacks, to an origin",
        description: "Returns the secret that signs calls to this origin (Standard Webhooks).",
        notes: SECRET_NOTES,
        query: SigningSecretParameters,
        answers: { 200: { description: "The secret.", schema: SigningSecretJson, headers: ["Cache-Control"] } },
      }),
    )
    .post(
      "/v1/signing-secret/rotate",
      async ({ caller, query: { origin, for: use } }) => {
        const checked = origin === undefined ? null : checkOrigin(origin);
        return jsonOf(serializeRotation(await signingService.rotate(caller, checked, use)));
      },
      operation({
        operationId: "rotateSigningSecret",
        permission: "manage",
        summary: "Rotate the signing secret of an origin, or of all origins",
        description: "Makes a new signing secret. Takes no body.",
        notes: ROTATION_NOTES,
        query: RotateQuery,
        body: optionalBody(NoBody),
        answers: {
          200: { description: "The rotation. Read the new secret with getSigningSecret.", schema: RotationJson },
        },
      }),
    );
}

function verifyRoutes({ verifyService }: AccountRouteDeps) {
  return createApiRoutes().post(
    "/v1/signing-secret/verify",
    async ({ caller, query: { origin, for: use = "calls" }, body }) => {
      const [checked, message] = [checkOrigin(origin), receivedIn(body)];
      const found = await verifyService.check(caller, checked, use, message);
      return jsonOf(serializeCheck({ origin: checked, use }, found));
    },
    operation({
      operationId: "verifySignature",
      permission: "manage",
      summary: "Check why a receiver can't verify a signature",
      description: "Says whether a signature that was received matches, with which secret, and if not, why.",
      notes: [
        "It shows no secret and makes no signature. Nothing of the request is stored.",
        "A timestamp beyond the tolerance of five minutes is a warning here; a receiver should refuse it.",
      ],
      query: SigningSecretParameters,
      body: jsonBody(VerifySignatureBody),
      answers: { 200: { description: "What was found, also where nothing matches.", schema: SignatureCheckJson } },
    }),
  );
}

export const AccountParams = pathParams(Type.Object({ id: AccountId }), "There is no such account.");

/** The accounts of the service, for owners of the first one. */
function accountsRoutes({ signUpGate }: AccountRouteDeps) {
  const requires = (caller: Caller) => signUpGate.requireOperator(caller);
  return createApiRoutes()
    .get(
      "/v1/accounts",
      async ({ caller }) => jsonOf({ data: (await signUpGate.list(caller)).map(serializeListedAccount) }),
      operation({
        operationId: "listAccounts",
        permission: "manage",
        requires,
        summary: "List the accounts of the service, for owners of the first one",
        description: "Lists the accounts of the service, stopped ones first.",
        notes: [
          "An account that signed up before sign-ups closed is stopped until it is allowed.",
          "Keys of other accounts than the first get 403.",
        ],
        answers: { 200: { description: "The accounts.", schema: AccountListJson } },
      }),
    )
    .post(
      "/v1/accounts/:id/allow",
      ({ caller, params }) => noContent(signUpGate.allow(caller, params.id)),
      operation({
        operationId: "allowAccount",
        permission: "manage",
        requires,
        summary: "Allow an account that signed up before sign-ups closed",
        description: "Lets a stopped account work again, for owners of the first account.",
        notes: [
          "Its keys work again, and its waiting actions are sent at once.",
          "Allowing an allowed account returns 204 again.",
        ],
        params: AccountParams,
        body: optionalBody(NoBody),
        answers: { 204: { description: "The account is allowed.", schema: null } },
      }),
    );
}
