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

/** What health and readiness say (decisions 12). */
export const Health = Type.Object(
  {
    status: Type.Enum(["ok", "unavailable"], { type: "string", description: "How it is.", examples: ["ok"] }),
    version: plainText("Version of the service.", "0.1.0"),
  },
  { title: "Health", description: "How the service is." },
);

export type Health = Static<typeof Health>;

/** One form of an answer's body. */
export interface Form {
  readonly mediaType: string;
  readonly schema: TSchema;
}

/** One answer of an operation that is no error. */
export interface Answer {
  readonly description: string;
  /** Null: it has no body. */
  readonly schema: TSchema | null;
  /** JSON unless it says otherwise. */
  readonly mediaType?: string;
  /** In which other form whoever asks for it gets the same, and is told of errors. */
  readonly alsoAs?: Form;
  /** In which other form whoever asks for it gets the same; errors stay what they are. */
  readonly onRequestAs?: Form;
  readonly headers?: readonly AnswerHeader[];
}

/** What goes into an operation, and what comes out of it when nothing is wrong. */
export interface Shape {
  /** The `{id}` of its path. */
  readonly id?: TSchema;
  /** The `{token}` of its path. */
  readonly token?: TSchema;
  readonly query?: TObject;
  /** Headers that it reads beside those that every request may have. */
  readonly headers?: readonly RequestHeader[];
  /** It asks for METRICS_TOKEN, where that is set. */
  readonly takesMetricsToken?: true;
  readonly body?: { readonly schema: TSchema; readonly isRequired: boolean };
  /** By status; the ones that the operations table has under `success`. */
  readonly answers: Readonly<Record<number, Answer>>;
}

const decision = (description: string, schema: TObject = Decision): Shape => ({
  id: ActionId,
  body: { schema, isRequired: false },
  answers: { 200: { description, schema: Action } },
});

/** The schemas of the operations table, row by row: a row without its shape does not compile. */
export const SHAPES: Readonly<Record<keyof typeof API, Shape>> = {
  createAction: {
    query: WaitQuery,
    headers: ["Idempotency-Key"],
    body: { schema: CreateAction, isRequired: true },
    answers: {
      201: { description: "The new action.", schema: Action, headers: ["Location"] },
      200: { description: "The older action that dedupe or Idempotency-Key found.", schema: FoundAction },
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
            description: "A page for people; it carries a Content-Security-Policy too.",
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
        description: "The events, for as long as the client listens.",
        schema: EventText,
        mediaType: "text/event-stream",
        headers: ["Cache-Control", "X-Accel-Buffering"],
      },
    },
  },
  approveAction: decision("The action, approved."),
  cancelAction: decision("The action, cancelled."),
  retryAction: decision("The action, about to be sent again or held again.", Retry),
  getSigningSecret: {
    query: SigningSecretQuery,
    answers: { 200: { description: "The secret.", schema: SigningSecret, headers: ["Cache-Control"] } },
  },
  rotateSigningSecret: {
    query: RotateQuery,
    body: { schema: NoBody, isRequired: false },
    answers: { 200: { description: "The rotation; the new secret is read like any other.", schema: Rotation } },
  },
  listCallbackHosts: { answers: { 200: { description: "The hosts.", schema: CallbackHostList } } },
  addCallbackHost: {
    body: { schema: AddCallbackHost, isRequired: true },
    answers: { 200: { description: "The host, listed.", schema: CallbackHost } },
  },
  removeCallbackHost: {
    query: RemoveCallbackHostQuery,
    answers: { 204: { description: "The host is not listed any more.", schema: null } },
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
      201: { description: "The pause. Nothing that it covers is claimed any more.", schema: Pause },
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
  getAccount: { answers: { 200: { description: "The account, and the key that asks.", schema: Account } } },
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
  getHealth: { answers: { 200: { description: "It lives.", schema: Health } } },
  getReady: {
    answers: {
      200: { description: "It can work.", schema: Health },
      503: { description: "It can't store just now, or stops.", schema: Health, headers: ["Retry-After"] },
    },
  },
  getMetrics: {
    takesMetricsToken: true,
    answers: {
      200: {
        description: "The numbers.",
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
