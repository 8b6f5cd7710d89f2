import Type, { type Static } from "typebox";
import { CredentialKindName, credentialNameSchema } from "../api/action-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import { checkListQuery, cutPage } from "../api/cursor.ts";
import { toJson } from "../api/serializer.ts";
import { auditEntry } from "../core/audit.ts";
import {
  type AskedCredential,
  type Credential,
  CREDENTIAL_REQUEST_STATUSES,
  type CredentialRequest,
  type ListedCredentialRequest,
  type ListedRequests,
  statusOfRequest,
} from "../core/credential.ts";
import { DomainError, invalidFields, type Issue, notFound, TooEarly } from "../core/domain-error.ts";
import { CREDENTIAL_REQUEST_ID } from "../core/ids.ts";
import {
  CREDENTIAL_DECLINED_MS,
  CREDENTIAL_REQUEST_MS,
  CREDENTIAL_REQUEST_PATH_CHARS_MAX,
  CREDENTIAL_REQUEST_PATHS_MAX,
  CREDENTIAL_REQUEST_RECIPIENTS_MAX,
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  LIST_LIMIT_DEFAULT,
} from "../core/limits.ts";
import { authorize, type Caller, hasScope, callerView } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation, optionalBody, pathParams } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { OwnerNotices } from "./alerts.ts";
import { boundsFrom } from "./bounds.ts";
import { CreateCredentialBody } from "./schemas.ts";
import type { CredentialService } from "./service.ts";

const CredentialRequestId = t.idSchema("crq", "Id of a request for a credential.", "CredentialRequestId");

/** What the requesting key may suggest. */
const suggested = {
  name: Type.Optional(credentialNameSchema),
  kind: Type.Optional(CredentialKindName),
  paths: Type.Optional(
    t.shortList(
      t.shortText(CREDENTIAL_REQUEST_PATH_CHARS_MAX, "A path.", "/v1/charges"),
      CREDENTIAL_REQUEST_PATHS_MAX,
      "Where the paths of your calls begin, by whole segments. A suggestion, as name, kind and methods are.",
      ["/v1/charges"],
    ),
  ),
  methods: CreateCredentialBody.properties.methods,
};

export const AskCredentialBody = t.requestObject(
  "AskCredential",
  "A credential that someone else fills in.",
  {
    host: t.hostSchema("The host to call, with its port unless it is the default one."),
    reason: Type.Refine(
      t.reason("What the credential is for; shown to the person who fills in the secret."),
      (text) => text.trim() !== "",
      () => "Must say what the credential is for.",
    ),
    ...suggested,
  },
  { examples: [{ host: "api.stripe.com", reason: "To refund order 4711.", name: "stripe-live" }] },
);

type AskCredentialBody = Static<typeof AskCredentialBody>;

export const DeclineCredentialBody = t.requestObject("DeclineCredential", "Optional details of a no.", {
  reason: Type.Optional(t.reason("Why; shown to the requester.")),
});

/** Every use case of requests for credentials: agents ask, owners fill in the secret or decline, and nobody else decides. */
export type CredentialRequestService = ReturnType<typeof createCredentialRequestService>;

export function createCredentialRequestService(
  app: AppContext,
  notices: OwnerNotices,
  credentialService: CredentialService,
  /** Called when a credential was requested, or a request was answered. */
  onChanged: (accountId: string) => void,
) {
  const { clock, ids } = app;
  const { credentialRequests: requests } = app.store;

  const find = async (caller: Caller, id: string): Promise<ListedCredentialRequest> => {
    authorize(caller, "read");
    const found = await requests.find(caller.accountId, id);
    if (found === null || (hasScope(caller.role) && found.keyId !== caller.keyId)) {
      throw notFound("request for a credential");
    }
    return found;
  };

  const findOpen = async (caller: Caller, id: string): Promise<ListedCredentialRequest> => {
    const request = await find(caller, id);
    const now = clock.now();
    if (statusOfRequest(request, now) !== "pending") throw notOpen(request, now);
    return request;
  };

  return {
    find,

    /** Lists requests, newest first. One more than `limit` means that there are more. An agent sees its own. */
    async list(
      caller: Caller,
      { limit, ...page }: Pick<ListedRequests, "status" | "before" | "limit">,
    ): Promise<readonly ListedCredentialRequest[]> {
      authorize(caller, "read");
      const keyId = hasScope(caller.role) ? caller.keyId : null;
      return requests.list(caller.accountId, { ...page, keyId, now: clock.now(), limit: limit + 1 });
    },

    /** The newest requests of the caller's own key. */
    async own({ accountId, keyId }: Caller, limit: number): Promise<readonly ListedCredentialRequest[]> {
      return keyId === null
        ? []
        : requests.list(accountId, { keyId, status: null, now: clock.now(), before: null, limit });
    },

    /** The requests that wait for an owner, oldest first. An agent sees its own. */
    async pending(caller: Caller): Promise<readonly ListedCredentialRequest[]> {
      authorize(caller, "read");
      const all = await requests.pending(caller.accountId, clock.now());
      return hasScope(caller.role) ? all.filter(({ keyId }) => keyId === caller.keyId) : all;
    },

    /**
     * Requests a credential, or returns the same key's open request for the same host, or the same request if it was declined
     * within `CREDENTIAL_DECLINED_MS`. Throws `validation_error`, `too_many_held`, and `TooEarly` beyond the daily number.
     */
    async ask(
      caller: Caller,
      body: AskCredentialBody,
    ): Promise<{ readonly request: ListedCredentialRequest; readonly isNew: boolean }> {
      authorize(caller, "create");
      const { accountId, keyId, actor: createdBy } = caller;
      if (keyId === null)
        throw new DomainError("forbidden", "Only keys can ask for credentials. Add the credential instead.");
      const now = clock.now();
      const request: CredentialRequest = {
        id: ids.credentialRequest(now),
        accountId,
        keyId,
        ...askedFrom(body),
        reason: body.reason,
        createdAt: now,
        createdBy,
        expiresAt: new Date(now.getTime() + CREDENTIAL_REQUEST_MS),
        decision: null,
        decidedAt: null,
        decidedBy: null,
        decisionReason: null,
        credential: null,
      };
      const audited = { kind: "credential_requested", subject: request.id, detail: { host: request.host } } as const;
      const declinedSince = new Date(now.getTime() - CREDENTIAL_DECLINED_MS);
      const all = await notices.rowsFor(accountId, now, (place) => `credential_requested:${place}` as const);
      const rows = all.slice(0, CREDENTIAL_REQUEST_RECIPIENTS_MAX);
      const asked = await requests.ask(request, declinedSince, rows, auditEntry(caller, audited, now));
      if (asked.kind !== "written" && asked.kind !== "matched") throw requestRefusal(asked);
      const isNew = asked.kind === "written";
      if (isNew) {
        notices.written(accountId, rows);
        onChanged(accountId);
      }
      return { request: await find(caller, asked.kind === "matched" ? asked.id : request.id), isNew };
    },

    /** Adds a credential for the requesting key. Throws `not_found`, `not_approvable`, and what `CredentialService.add` throws. */
    async grant(caller: Caller, id: string, body: CreateCredentialBody): Promise<Credential> {
      authorize(caller, "manage");
      const request = await findOpen(caller, id);
      const { keyId, keyRole, host } = request;
      // An owner's key may use every credential, so no credential lists it.
      const asking = keyRole === null || !hasScope(keyRole) ? [] : [keyId];
      const keys = [...new Set([...(body.keys ?? []), ...asking])];
      return credentialService.add(caller, { ...body, keys }, async (credential, audit) => {
        const { name } = credential;
        const audited = { kind: "credential_request_granted", subject: id, detail: { host, name } } as const;
        const outcome = await requests.grant(id, credential, audit, auditEntry(caller, audited, credential.createdAt));
        if (outcome === "gone") throw notOpen(await find(caller, id), clock.now());
        onChanged(caller.accountId);
        return outcome;
      });
    },

    /** Declines a request. Throws `not_found`, and `not_approvable` if nobody can answer it any more. */
    async decline(caller: Caller, id: string, reason: string | null): Promise<ListedCredentialRequest> {
      authorize(caller, "manage");
      const { host } = await findOpen(caller, id);
      const { accountId, actor: by } = caller;
      const at = clock.now();
      const audited = { kind: "credential_request_declined", subject: id, detail: { host } } as const;
      const isDeclined = await requests.decline({ accountId, id, at, by, reason }, auditEntry(caller, audited, at));
      if (!isDeclined) throw notOpen(await find(caller, id), at);
      onChanged(accountId);
      return find(caller, id);
    },
  };
}

function notOpen(request: ListedCredentialRequest, now: Date): DomainError {
  const status = statusOfRequest(request, now);
  const why = status === "cancelled" ? "cancelled, since its key has ended" : status;
  return new DomainError("not_approvable", `This request is ${why} and can no longer be answered.`);
}

function requestRefusal(asked: Extract<AskedCredential, { kind: "full" | "daily" }>): DomainError {
  if (asked.kind === "daily") {
    // 403, since clients would repeat a 429 in a second.
    return new TooEarly(
      "forbidden",
      `This key has asked for ${CREDENTIAL_REQUESTS_PER_DAY_MAX} credentials within 24 hours. It may ask again from ${asked.retryAt.toISOString()}; an owner can add a credential at any time.`,
      asked.retryAt,
    );
  }
  const [whose, count] =
    asked.of === "key"
      ? ["This key", CREDENTIAL_REQUESTS_PER_KEY_MAX]
      : ["This account", CREDENTIAL_REQUESTS_PENDING_MAX];
  return new DomainError(
    "too_many_held",
    `${whose} has ${count} requests for credentials that no one has answered. Wait until an owner answers some.`,
  );
}

/** What is asked for, in its normal form. Throws `validation_error`. */
function askedFrom({ host, name, kind, paths: under, methods: by }: AskCredentialBody) {
  const { bounds, issues } = boundsFrom({
    hosts: [host],
    ...(under !== undefined && { paths: under }),
    ...(by !== undefined && { methods: by }),
  });
  const [normal] = bounds.hosts ?? [];
  const wrong: Issue[] = issues.map(({ field, message }) =>
    field === "hosts.0" ? { field: "host", message: NOT_A_HOST } : { field, message },
  );
  // URLs allow names such as a.example,b.example, which a person would read as two.
  const isPlain = normal !== undefined && PLAIN_HOST.test(normal);
  if (!isPlain && wrong.length === 0) wrong.push({ field: "host", message: NOT_A_HOST });
  if (wrong.length > 0 || normal === undefined) throw invalidFields(wrong);
  return {
    host: normal,
    name: name ?? null,
    kind: kind ?? null,
    paths: bounds.paths ?? null,
    methods: bounds.methods ?? null,
  };
}

const PLAIN_HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d+)?$/;

const NOT_A_HOST = "Must be one host name or address, like api.example.com or 10.0.0.7:8080.";

export const CredentialRequestJson = t.answerObject(
  "CredentialRequest",
  "A request of a key for a credential, without any secret.",
  {
    id: CredentialRequestId,
    status: t.choice(
      CREDENTIAL_REQUEST_STATUSES,
      "pending: an owner of the account has to answer; cancelled: the key has ended.",
      "granted",
    ),
    host: t.plainText("The host.", "api.stripe.com"),
    reason: t.plainText("In the requester's words.", "To refund order 4711."),
    ...suggested,
    credential: t.nullable(t.plainText("The name of the credential that the key may use now.", "stripe-live")),
    key_id: t.plainText("The key that asked.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
    created_by: t.plainText("Who asked.", "key:agent"),
    created_at: t.dateTime("When it was asked for."),
    expires_at: t.dateTime("From then on no one can answer."),
    decided_by: t.nullable(t.plainText("Who answered.", "user:ann@example.com")),
    decided_at: t.nullable(t.dateTime("When it was answered.")),
    decision_reason: t.nullable(t.plainText("Why it was declined.", "Use the sandbox.")),
  },
);

export type CredentialRequestJson = Static<typeof CredentialRequestJson>;

const CURSOR_EXAMPLE = "Y3JxXzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

export const CredentialRequestPageJson = t.answerObject(
  "CredentialRequestPage",
  "A page of requests for credentials.",
  {
    data: Type.Array(CredentialRequestJson, { description: "Newest first; the pending ones alone: oldest first." }),
    next_cursor: t.nullable(t.plainText("Pass it as cursor for the next page; null: no more.", CURSOR_EXAMPLE)),
  },
);

export const CredentialRequestParameters = t.closedObject({
  status: Type.Optional(
    t.choice(
      CREDENTIAL_REQUEST_STATUSES,
      "Only those with this status. The pending ones are all on one page.",
      "pending",
    ),
  ),
  ...t.pageParameters(CURSOR_EXAMPLE),
});

/** A request as the caller sees it: another key's texts are masked, since they may contain secrets. */
export function serializeRequest(caller: Caller, request: ListedCredentialRequest, now: Date): CredentialRequestJson {
  const view = callerView(caller, request);
  const status = statusOfRequest(request, now);
  if (view === "whole") return toJson(CredentialRequestJson, { ...request, status });
  const { reason: why, paths, createdBy, decidedBy, decisionReason } = request;
  return toJson(CredentialRequestJson, {
    ...request,
    status,
    reason: maskText(why, view),
    paths: paths?.map((path) => maskText(path, view)),
    createdBy: maskedActor(createdBy, view),
    decidedBy: decidedBy === null ? null : maskedActor(decidedBy, view),
    decisionReason: decisionReason === null ? null : maskText(decisionReason, view),
  });
}

export const CredentialRequestParams = pathParams(
  Type.Object({ id: CredentialRequestId }),
  "There is no such request for a credential.",
);

/** Agents request, owners answer. There are no links that decide, since the answer is a secret. */
export function credentialRequestRoutes({
  credentialRequests,
  clock,
}: Pick<AppContext, "clock"> & { readonly credentialRequests: CredentialRequestService }) {
  const answer = (caller: Caller, request: ListedCredentialRequest, status = 200) =>
    jsonResponse(serializeRequest(caller, request, clock.now()), status);
  return createApiRoutes()
    .post(
      "/v1/credential-requests",
      async ({ caller, body }) => {
        const { request, isNew } = await credentialRequests.ask(caller, body);
        return answer(caller, request, isNew ? 201 : 200);
      },
      operation({
        operationId: "askCredential",
        permission: "create",
        summary: "Ask for a credential",
        description: "Asks the owners of the account to fill in a secret for a host. They fill it in, or decline.",
        notes: [
          "It is shown on the page Approvals for 7 days, and ends with its key. Read it again for the answer: with `granted` the key may use `credential`.",
          "A key has one open request for a host: asking again returns it with 200, and for 24 hours after it was declined, the same request returns the declined one.",
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
        const { status = null, cursor, limit = LIST_LIMIT_DEFAULT } = query;
        const { before } = checkListQuery({}, cursor, CREDENTIAL_REQUEST_ID);
        const isPaged = status !== "pending";
        const found = isPaged
          ? await credentialRequests.list(caller, { status, before, limit })
          : await credentialRequests.pending(caller);
        const rows = found.map((one) => serializeRequest(caller, one, now));
        return jsonResponse(cutPage(rows, isPaged ? limit : rows.length));
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
      async ({ caller, params }) => answer(caller, await credentialRequests.find(caller, params.id)),
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
        return answer(caller, await credentialRequests.find(caller, params.id));
      },
      operation({
        operationId: "grantCredentialRequest",
        permission: "manage",
        summary: "Fill in a credential that a key asks for",
        description: "Adds a credential, as createCredential does, that the asking key may use at once.",
        notes: [
          "Nothing is taken over from what the key has suggested: name the hosts, paths and methods that you allow.",
        ],
        params: CredentialRequestParams,
        body: jsonBody(CreateCredentialBody),
        answers: {
          200: { description: "The request, with the name of the credential.", schema: CredentialRequestJson },
        },
        errors: ["not_approvable"],
      }),
    )
    .post(
      "/v1/credential-requests/:id/decline",
      async ({ caller, params, body }) =>
        answer(caller, await credentialRequests.decline(caller, params.id, body.reason ?? null)),
      operation({
        operationId: "declineCredentialRequest",
        permission: "manage",
        summary: "Decline a request for a credential",
        description: "Ends a request. Its key reads the reason.",
        params: CredentialRequestParams,
        body: optionalBody(DeclineCredentialBody),
        answers: { 200: { description: "The request.", schema: CredentialRequestJson } },
        errors: ["not_approvable"],
      }),
    );
}
