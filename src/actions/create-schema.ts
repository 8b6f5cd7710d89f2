import type { ActionRequest, HttpMethod, Action } from "./action.ts";
import { DomainError, type ErrorCode, type Issue } from "../api/domain-error.ts";
import { headerIssues } from "../api/headers.ts";
import { RETRIES_DEFAULT, KEY_CHARS_MAX } from "../config/limits.ts";
import { type Hold, isHeld } from "../accounts/roles.ts";
import { CreateAction } from "./schemas.ts";
import { compile, isJsonObject, onePerField, withoutNulls } from "../api/schema-helpers.ts";

/** An allowed target, or the sentence that says why calls may not go there. */
type CheckedRequest = { readonly hostname: string; readonly host: string } | { readonly refused: string };

export interface CreateRules {
  /** Checks a URL against the target policy, without resolving its name. */
  readonly checkTarget: (url: string) => CheckedRequest;
}

/** A create before validation. */
export interface CreateInput {
  readonly value: unknown;
  /** The text of its member `body`, with numbers as written. Called only if everything else is valid. */
  readonly bodyText: () => string;
  /** The `Idempotency-Key` header. */
  readonly idempotencyKey: string | null;
  /** The hold of the caller's key. */
  readonly hold: Hold;
}

export interface CheckedCreate {
  readonly request: ActionRequest;
  readonly sync: boolean;
  /** Why the call is requested; null: not given. */
  readonly reason: string | null;
}

const CREATE = compile(CreateAction);

/**
 * Validates a create. Throws with all issues at once, under the first of these codes that applies: `missing_field`,
 * `invalid_url`, `invalid_sync`, `validation_error`.
 */
export function createCheckCreate({ checkTarget }: CreateRules) {
  return (input: CreateInput): CheckedCreate => {
    const given = withoutNulls(input.value, CreateAction.properties);
    const key = input.idempotencyKey === null ? null : readIdempotencyKey(input.idempotencyKey);
    const target = isJsonObject(given) && typeof given["url"] === "string" ? checkTarget(given["url"]) : null;
    const callback =
      isJsonObject(given) && typeof given["callback"] === "string" ? checkTarget(given["callback"]) : null;
    const rules = isJsonObject(given) ? rulesBroken(given, { target, callback, hold: input.hold }) : [];
    const keyIssues = key !== null && "issue" in key ? [key.issue] : [];

    if (rules.length + keyIssues.length === 0 && CREATE.accepts(given) && target !== null && "host" in target) {
      const idempotencyKey = key !== null && "key" in key ? key.key : null;
      const request = requestOf(given, { ...input, target, idempotencyKey });
      return { request, sync: given.sync ?? false, reason: given.reason ?? null };
    }
    const issues = onePerField([...CREATE.issues(withoutHeaders(given)), ...rules, ...keyIssues]);
    const code = codeOf(given, rules, issues);
    throw new DomainError(code, MESSAGES[code], issues);
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** `headersIssues` checks the headers and names each; the schema would check them a second time. */
function withoutHeaders(given: unknown): unknown {
  return isJsonObject(given) && isJsonObject(given["headers"]) ? { ...given, headers: {} } : given;
}

interface RuleContext {
  readonly target: CheckedRequest | null;
  readonly callback: CheckedRequest | null;
  readonly hold: Hold;
}

/** The rules that a schema cannot express. Each checks only fields of the right type; the schema reports the others. */
function rulesBroken(given: Fields, { target, callback, hold }: RuleContext): readonly Issue[] {
  return [
    ...refusedBy("url", target),
    ...refusedBy("callback", callback),
    ...syncIssues(given, hold),
    ...bodyIssues(given),
    ...headersIssues(given),
  ];
}

function refusedBy(field: string, checked: CheckedRequest | null): readonly Issue[] {
  return checked !== null && "refused" in checked ? [{ field, message: checked.refused }] : [];
}

function syncIssues(given: Fields, hold: Hold): readonly Issue[] {
  if (given["sync"] !== true) return [];
  if (given["approve"] === true) return [{ field: "sync", message: "Can't be true together with approve: true." }];
  const method: HttpMethod = given["method"] === "GET" ? "GET" : "POST";
  if (!isHeld(hold, method)) return [];
  return [{ field: "sync", message: "Can't be true: what this key creates is held for approval." }];
}

function bodyIssues(given: Fields): readonly Issue[] {
  if (given["method"] !== "GET" || given["body"] === undefined) return [];
  return [{ field: "body", message: "Can't go with GET, to which HTTP gives no meaning for a body." }];
}

function headersIssues(given: Fields): readonly Issue[] {
  const headers = given["headers"];
  if (!isJsonObject(headers)) return [];
  const entries = Object.entries(headers);
  const wrong = entries.filter(([, value]) => typeof value !== "string");
  const texts = entries.map(([name, value]) => [name, typeof value === "string" ? value : ""] as const);
  return [
    ...wrong.map(([name]) => ({ field: `headers.${name}`, message: "Must be a string." })),
    ...headerIssues(Object.fromEntries(texts), given["body"] !== undefined),
  ];
}

type Code = Extract<ErrorCode, "missing_field" | "invalid_url" | "invalid_sync" | "validation_error">;

const MESSAGES: Readonly<Record<Code, string>> = {
  missing_field: "The field url is required.",
  invalid_url: "No call may go to this URL.",
  invalid_sync: "The request can't be answered in sync: the action would wait for a person.",
  validation_error: "The request has fields that are not valid.",
};

function codeOf(given: unknown, rules: readonly Issue[], issues: readonly Issue[]): Code {
  if (!isJsonObject(given)) return "validation_error";
  if (given["url"] === undefined) return "missing_field";
  if (issues.some(({ field }) => field === "url" || field === "callback")) return "invalid_url";
  return rules.some(({ field }) => field === "sync") ? "invalid_sync" : "validation_error";
}

interface RequestParts {
  readonly target: { readonly hostname: string; readonly host: string };
  readonly idempotencyKey: string | null;
  readonly bodyText: () => string;
  readonly hold: Hold;
}

function requestOf(given: CreateAction, { target, idempotencyKey, bodyText, hold }: RequestParts): ActionRequest {
  const method = given.method ?? "POST";
  return {
    url: given.url,
    hostname: target.hostname,
    host: target.host,
    method,
    body: given.body === undefined ? null : bodyText(),
    headers: given.headers ?? null,
    dedupe: given.dedupe ?? null,
    idempotencyKey,
    retries: given.retries ?? RETRIES_DEFAULT,
    onUnknown: given.on_unknown ?? "retry",
    approve: (given.approve ?? false) || isHeld(hold, method),
    callback: given.callback ?? null,
    notifyEmail: given.notify?.email ?? null,
  };
}

/** With the same value in the new call, the target would take both calls for one. */
const IDEMPOTENCY_HEADER = "idempotency-key";

/**
 * A create that repeats an action as a new one. The caller validates it like any other, since rules and settings may have
 * changed. It keeps the request and its options, `approve` included, but neither `dedupe` nor any idempotency key.
 */
export function createInputOf(action: Action, hold: Hold): CreateInput {
  const { url, method, body, headers, retries, onUnknown, approve, callback, notifyEmail } = action;
  const kept = Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() !== IDEMPOTENCY_HEADER);
  const parsed: unknown = body === null ? null : JSON.parse(body);
  const value = {
    url,
    method,
    body: parsed,
    headers: kept.length === 0 ? null : Object.fromEntries(kept),
    retries,
    on_unknown: onUnknown,
    approve,
    callback,
    notify: notifyEmail === null ? null : { email: notifyEmail },
  };
  return { value, bodyText: () => body ?? "", idempotencyKey: null, hold };
}

const PRINTABLE = /^[ -~]+$/;

/** The form of the Idempotency-Key draft: a structured-field string (RFC 9651, 3.3.3). */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/** The key of an `Idempotency-Key` header, without quotes, or what is wrong with it. */
function readIdempotencyKey(header: string): { readonly key: string } | { readonly issue: Issue } {
  const quoted = QUOTED.exec(header)?.[1];
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(["\\])/g, "$1");
  if (key.length <= KEY_CHARS_MAX && PRINTABLE.test(key)) return { key };
  const message = `Must be 1 to ${KEY_CHARS_MAX} printable ASCII characters.`;
  return { issue: { field: "Idempotency-Key", message } };
}
