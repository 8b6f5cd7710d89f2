import Type, { type Static, type TObject, type TSchema } from "typebox";
import { plainText } from "./schema-helpers.ts";
import {
  Account,
  AccountId,
  AccountList,
  Credentials,
  LoggedIn,
  SignedUp,
  CreatedKey,
  CreateKey,
  KeyId,
  KeyList,
} from "../accounts/schemas.ts";
import {
  Action,
  ActionId,
  CreateAction,
  FoundAction,
  Decision,
  Retry,
  ReadQuery,
  WaitQuery,
} from "../actions/schemas.ts";
import {
  AddCallbackHost,
  CallbackHost,
  CallbackHostList,
  RemoveCallbackHostQuery,
} from "../accounts/callback-hosts.ts";
import { DecisionFacts } from "../approvals/facts-schema.ts";
import { EventText, ActionPage, ListQuery, Timeline } from "../actions/list-schemas.ts";
import { type AnswerHeader, type RequestHeader, SECRET_PATH_HEADERS } from "./headers.ts";
import type { API } from "./operations.ts";
import { AuditLog, AuditQuery } from "../audit/schemas.ts";
import { CreatePause, Pause, PauseId, PauseList, RevokeQuery } from "../pauses/schemas.ts";
import { ReceiptJson, ReceiptToken } from "../receipts/schema.ts";
import { NoBody, RotateQuery, Rotation, SigningSecret, SigningSecretQuery } from "../accounts/signing-schemas.ts";

/** The response of /health and /ready. */
export const Health = Type.Object(
  {
    status: Type.Enum(["ok", "unavailable"], {
      type: "string",
      description: "Status of the service.",
      examples: ["ok"],
    }),
    version: plainText("Version of the service.", "0.1.0"),
  },
  { title: "Health", description: "Status and version of the service." },
);

export type Health = Static<typeof Health>;

/** A further media type of a response's body. */
export interface AlternativeBody {
  readonly mediaType: string;
  readonly schema: TSchema;
}

/** A successful response of an operation. */
export interface Answer {
  readonly description: string;
  /** Null: no body. */
  readonly schema: TSchema | null;
  /** Default: application/json. */
  readonly mediaType?: string;
  /** A second media type by `Accept`, in which errors come too. */
  readonly alsoAs?: AlternativeBody;
  /** A second media type by `Accept`; errors stay JSON. */
  readonly onRequestAs?: AlternativeBody;
  readonly headers?: readonly AnswerHeader[];
}

/** The request of an operation, and its successful responses. */
export interface Shape {
  /** The `{id}` of its path. */
  readonly id?: TSchema;
  /** The `{token}` of its path. */
  readonly token?: TSchema;
  readonly query?: TObject;
  /** Request headers that it reads, beside X-Request-Id. */
  readonly headers?: readonly RequestHeader[];
  /** Needs METRICS_TOKEN where that is set. */
  readonly takesMetricsToken?: true;
  readonly body?: { readonly schema: TSchema; readonly isRequired: boolean };
  /** By status: those in `success` of the operations table. */
  readonly answers: Readonly<Record<number, Answer>>;
}

const decision = (description: string, schema: TObject = Decision): Shape => ({
  id: ActionId,
  body: { schema, isRequired: false },
  answers: { 200: { description, schema: Action } },
});

/** The schemas of every operation in the operations table. */
export const SHAPES: Readonly<Record<keyof typeof API, Shape>> = {
  createAction: {
    query: WaitQuery,
    headers: ["Idempotency-Key"],
    body: { schema: CreateAction, isRequired: true },
    answers: {
      201: { description: "The new action.", schema: Action, headers: ["Location"] },
      200: { description: "The earlier action with the same dedupe or Idempotency-Key.", schema: FoundAction },
    },
  },
  listActions: { query: ListQuery, answers: { 200: { description: "A page of actions.", schema: ActionPage } } },
  getAction: { id: ActionId, query: ReadQuery, answers: { 200: { description: "The action.", schema: Action } } },
  getTimeline: { id: ActionId, answers: { 200: { description: "Its timeline.", schema: Timeline } } },
  getDecisionFacts: {
    id: ActionId,
    answers: { 200: { description: "Facts and risks.", schema: DecisionFacts } },
  },
  getReceipt: {
    token: ReceiptToken,
    answers: {
      200: {
        description: "The receipt: JSON with `Accept: application/json`, else a page.",
        schema: ReceiptJson,
        alsoAs: {
          mediaType: "text/html",
          schema: Type.String({
            description: "A page for people, with a Content-Security-Policy.",
            examples: ["<!doctype html>"],
          }),
        },
        headers: SECRET_PATH_HEADERS,
      },
    },
  },
  streamEvents: {
    headers: ["Last-Event-ID"],
    answers: {
      200: {
        description: "The events, until the client disconnects.",
        schema: EventText,
        mediaType: "text/event-stream",
        headers: ["Cache-Control", "X-Accel-Buffering"],
      },
    },
  },
  approveAction: decision("The action, approved."),
  cancelAction: decision("The action, cancelled."),
  retryAction: decision("The action, pending or awaiting approval again.", Retry),
  getSigningSecret: {
    query: SigningSecretQuery,
    answers: { 200: { description: "The secret.", schema: SigningSecret, headers: ["Cache-Control"] } },
  },
  rotateSigningSecret: {
    query: RotateQuery,
    body: { schema: NoBody, isRequired: false },
    answers: { 200: { description: "The rotation. Read the new secret with getSigningSecret.", schema: Rotation } },
  },
  listCallbackHosts: { answers: { 200: { description: "The hosts.", schema: CallbackHostList } } },
  addCallbackHost: {
    body: { schema: AddCallbackHost, isRequired: true },
    answers: { 200: { description: "The host, listed.", schema: CallbackHost } },
  },
  removeCallbackHost: {
    query: RemoveCallbackHostQuery,
    answers: { 204: { description: "The host was removed from the list.", schema: null } },
  },
  listKeys: { answers: { 200: { description: "The keys.", schema: KeyList } } },
  createKey: {
    body: { schema: CreateKey, isRequired: true },
    answers: { 201: { description: "The new key.", schema: CreatedKey, headers: ["Cache-Control"] } },
  },
  revokeKey: {
    id: KeyId,
    query: RevokeQuery,
    answers: { 204: { description: "The key is revoked.", schema: null } },
  },
  createPause: {
    body: { schema: CreatePause, isRequired: true },
    answers: {
      201: { description: "The pause. No attempt that it covers is started any more.", schema: Pause },
      200: { description: "The pause that was in force already.", schema: Pause },
    },
  },
  listPauses: { answers: { 200: { description: "The pauses in force.", schema: PauseList } } },
  endPause: { id: PauseId, answers: { 204: { description: "The pause has ended.", schema: null } } },
  listAudit: {
    query: AuditQuery,
    answers: {
      200: {
        description: "A page of the log; with `Accept: application/x-ndjson` all of it, an entry a line.",
        schema: AuditLog,
        onRequestAs: {
          mediaType: "application/x-ndjson",
          schema: Type.String({ description: "Entries as JSON, one a line, newest first.", examples: ["{}\n"] }),
        },
        headers: ["Cache-Control"],
      },
    },
  },
  listAccounts: { answers: { 200: { description: "The accounts.", schema: AccountList } } },
  allowAccount: {
    id: AccountId,
    body: { schema: NoBody, isRequired: false },
    answers: { 204: { description: "The account is allowed.", schema: null } },
  },
  getAccount: { answers: { 200: { description: "The account, and the key of the request.", schema: Account } } },
  signUp: {
    body: { schema: Credentials, isRequired: true },
    answers: { 201: { description: "The new account.", schema: SignedUp, headers: ["Set-Cookie", "Cache-Control"] } },
  },
  logIn: {
    body: { schema: Credentials, isRequired: true },
    answers: { 200: { description: "Who logged in.", schema: LoggedIn, headers: ["Set-Cookie", "Cache-Control"] } },
  },
  logOut: {
    answers: { 204: { description: "The session has ended.", schema: null, headers: ["Set-Cookie", "Cache-Control"] } },
  },
  getHealth: { answers: { 200: { description: "The process runs.", schema: Health } } },
  getReady: {
    answers: {
      200: { description: "The service can store actions.", schema: Health },
      503: {
        description: "The service can't store actions at the moment, or is stopping.",
        schema: Health,
        headers: ["Retry-After"],
      },
    },
  },
  getMetrics: {
    takesMetricsToken: true,
    answers: {
      200: {
        description: "The metrics.",
        schema: Type.String({ description: "Prometheus text.", examples: ["outgate_actions_created_total 7\n"] }),
        mediaType: "text/plain; version=0.0.4; charset=utf-8",
      },
    },
  },
  getOpenApi: {
    answers: {
      200: {
        description: "The description.",
        schema: Type.Unsafe<object>({
          type: "object",
          required: ["openapi", "info", "paths"],
          description: "An OpenAPI 3.1 document.",
        }),
      },
    },
  },
};
