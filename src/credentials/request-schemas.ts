import Type, { type Static } from "typebox";
import { CredentialKindName, credentialNameSchema } from "../api/action-schemas.ts";
import {
  choice,
  dateTime,
  encodeCursor,
  hostSchema,
  idSchema,
  nullable,
  pageLimit,
  plainText,
  reason,
  requestObject,
  answerObject,
  closedObject,
  shortText,
  shortList,
} from "../api/schema-helpers.ts";
import {
  CREDENTIAL_REQUEST_STATUSES,
  type ListedCredentialRequest,
  statusOfRequest,
} from "../core/credential-request.ts";
import { invalidFields, type Issue } from "../core/domain-error.ts";
import { CREDENTIAL_REQUEST_PATH_CHARS_MAX, CREDENTIAL_REQUEST_PATHS_MAX } from "../core/limits.ts";
import { type Caller, viewOf } from "../core/roles.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { boundsFrom, CreateCredential } from "./schemas.ts";

export const credentialRequestIdSchema = idSchema("crq", "Id of a request for a credential.", "CredentialRequestId");

const why = reason("What the credential is for; whoever fills in the secret reads it.");

const paths = shortList(
  shortText(CREDENTIAL_REQUEST_PATH_CHARS_MAX, "A path.", "/v1/charges"),
  CREDENTIAL_REQUEST_PATHS_MAX,
  "Where the paths of your calls begin, by whole segments. A suggestion, as name, kind and methods are.",
  ["/v1/charges"],
);

const { methods } = CreateCredential.properties;

export const AskCredentialBody = requestObject(
  "AskCredential",
  "A credential that somebody else fills in.",
  {
    host: hostSchema("The host to call, with its port unless it is the default one."),
    reason: Type.Refine(
      why,
      (text) => text.trim() !== "",
      () => "Must say what the credential is for.",
    ),
    name: Type.Optional(credentialNameSchema),
    kind: Type.Optional(CredentialKindName),
    paths: Type.Optional(paths),
    methods,
  },
  { examples: [{ host: "api.stripe.com", reason: "To refund order 4711.", name: "stripe-live" }] },
);

export type AskCredentialBody = Static<typeof AskCredentialBody>;

export const DeclineCredential = requestObject("DeclineCredential", "Optional details of a no.", {
  reason: Type.Optional(reason("Why; whoever asked reads it.")),
});

export const CredentialRequestJson = answerObject(
  "CredentialRequest",
  "A request of a key for a credential, without any secret.",
  {
    id: credentialRequestIdSchema,
    status: choice(
      CREDENTIAL_REQUEST_STATUSES,
      "pending: an owner of the account has to answer; cancelled: the key has ended.",
      "granted",
    ),
    host: plainText("The host.", "api.stripe.com"),
    reason: plainText("In the words of whoever asked.", "To refund order 4711."),
    name: Type.Optional(credentialNameSchema),
    kind: Type.Optional(CredentialKindName),
    paths: Type.Optional(paths),
    methods,
    credential: nullable(plainText("The name of the credential that the key may use now.", "stripe-live")),
    key_id: plainText("The key that asked.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
    created_by: plainText("Who asked.", "key:agent"),
    created_at: dateTime("When it was asked for."),
    expires_at: dateTime("From then on nobody can answer."),
    decided_by: nullable(plainText("Who answered.", "user:ann@example.com")),
    decided_at: nullable(dateTime("When it was answered.")),
    decision_reason: nullable(plainText("Why it was declined.", "Use the sandbox.")),
  },
);

export type CredentialRequestJson = Static<typeof CredentialRequestJson>;

const CURSOR_EXAMPLE = "Y3JxXzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

export const CredentialRequestPageJson = answerObject("CredentialRequestPage", "A page of requests for credentials.", {
  data: Type.Array(CredentialRequestJson, { description: "Newest first; the pending ones alone: oldest first." }),
  next_cursor: nullable(plainText("Pass it as cursor for the next page; null: no more.", CURSOR_EXAMPLE)),
});

export const CredentialRequestParameters = closedObject({
  status: Type.Optional(
    choice(
      CREDENTIAL_REQUEST_STATUSES,
      "Only those with this status. The pending ones are all on one page.",
      "pending",
    ),
  ),
  limit: Type.Optional(pageLimit("Most entries of a page.")),
  cursor: Type.Optional(plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
});

/** As the caller sees it: the words of another key may hold what is secret. */
export function serializeRequest(caller: Caller, request: ListedCredentialRequest, now: Date): CredentialRequestJson {
  const { id, host, name, kind, paths: under, methods: by, keyId, createdBy, decidedBy, decisionReason } = request;
  const view = viewOf(caller, request);
  const words = (text: string) => (view === "whole" ? text : maskText(text, view));
  return {
    id,
    status: statusOfRequest(request, now),
    host,
    reason: words(request.reason),
    ...(name !== null && { name }),
    ...(kind !== null && { kind }),
    ...(under !== null && { paths: under.map(words) }),
    ...(by !== null && { methods: [...by] }),
    credential: request.credential,
    key_id: keyId,
    created_by: view === "whole" ? createdBy : maskedActor(createdBy, view),
    created_at: request.createdAt.toISOString(),
    expires_at: request.expiresAt.toISOString(),
    decided_by: decidedBy === null || view === "whole" ? decidedBy : maskedActor(decidedBy, view),
    decided_at: request.decidedAt?.toISOString() ?? null,
    decision_reason: decisionReason === null ? null : words(decisionReason),
  };
}

/** A page from one more than fits. */
export function requestPageJson(
  found: readonly CredentialRequestJson[],
  limit: number,
): Static<typeof CredentialRequestPageJson> {
  const data = found.slice(0, limit);
  const last = data.at(-1);
  return { data, next_cursor: found.length > limit && last !== undefined ? encodeCursor(last.id) : null };
}

/** What is asked for in the form in which calls are compared with it. Throws `validation_error`. */
export function askedFrom({ host, name, kind, paths: under, methods: by }: AskCredentialBody) {
  const { bounds, issues } = boundsFrom({
    hosts: [host],
    ...(under !== undefined && { paths: under }),
    ...(by !== undefined && { methods: by }),
  });
  const [normal] = bounds.hosts ?? [];
  const wrong: Issue[] = issues.map(({ field, message }) =>
    field === "hosts.0" ? { field: "host", message: NOT_A_HOST } : { field, message },
  );
  // How wide it is says whoever fills it in. URLs allow names such as a.example,b.example, which a person reads as two.
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
