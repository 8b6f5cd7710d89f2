import type { ActionRequest, Action } from "./action.ts";
import { DomainError, type ErrorCode, type Issue } from "../api/domain-error.ts";
import { NO_EXTRAS } from "./extras.ts";
import { headerIssues } from "../api/headers.ts";
import { RETRIES_DEFAULT, KEY_CHARS_MAX } from "../config/limits.ts";
import type { Hold } from "../accounts/roles.ts";
import { holdReason } from "../approvals/policy.ts";
import { CreateAction } from "./schemas.ts";
import { compile, isJsonObject, onePerField, withoutNulls } from "../api/schema-helpers.ts";

type AllowedTarget = Pick<ActionRequest, "hostname" | "host">;

/** An allowed target, or the sentence that says why calls may not go there. */
type CheckedTarget = AllowedTarget | { readonly refused: string };

export interface CreateRules {
  /** Checks a URL against the target policy, without resolving its name. */
  readonly checkTarget: (url: string) => CheckedTarget;
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
  return ({ value, bodyText, idempotencyKey, hold }: CreateInput): CheckedCreate => {
    const given = withoutNulls(value, CreateAction.properties);
    const fields = isJsonObject(given) ? given : {};
    const checkUrl = (url: unknown) => (typeof url === "string" ? checkTarget(url) : null);
    const target = checkUrl(fields["url"]);
    const key = idempotencyKey === null ? { key: null } : readIdempotencyKey(idempotencyKey);
    // What a schema can't express. Each rule checks only fields of the right type; the schema reports the others.
    const broken = [
      ...refusedBy("url", target),
      ...refusedBy("callback", checkUrl(fields["callback"])),
      ...syncIssues(fields, hold),
      ...bodyIssues(fields),
      ...headersIssues(fields),
      ...("issue" in key ? [key.issue] : []),
    ];
    if (broken.length === 0 && CREATE.accepts(given) && target !== null && "host" in target && "key" in key) {
      const request = requestOf(given, target, { body: given.body === undefined ? null : bodyText(), key: key.key });
      return { request, sync: given.sync ?? false, reason: given.reason ?? null };
    }
    const issues = onePerField([...CREATE.issues(withoutHeaders(given)), ...broken]);
    const code = codeOf(given, broken, issues);
    throw new DomainError(code, MESSAGES[code], issues);
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** `headersIssues` checks the headers and names each; the schema would check them a second time. */
function withoutHeaders(given: unknown): unknown {
  return isJsonObject(given) && isJsonObject(given["headers"]) ? { ...given, headers: {} } : given;
}

function refusedBy(field: string, checked: CheckedTarget | null): readonly Issue[] {
  return checked !== null && "refused" in checked ? [{ field, message: checked.refused }] : [];
}

function syncIssues(given: Fields, hold: Hold): readonly Issue[] {
  if (given["sync"] !== true) return [];
  const method = given["method"] === "GET" ? "GET" : "POST";
  const because = holdReason({ approve: given["approve"] === true, method }, hold);
  if (because === null) return [];
  return [{ field: "sync", message: because === "request" ? SYNC_WITH_APPROVE : SYNC_WITH_HOLD }];
}

const SYNC_WITH_APPROVE = "Can't be true together with approve: true.";

const SYNC_WITH_HOLD = "Can't be true: what this key creates is held for approval.";

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

function requestOf(
  given: CreateAction,
  { hostname, host }: AllowedTarget,
  { body, key }: { readonly body: string | null; readonly key: string | null },
): ActionRequest {
  return {
    url: given.url,
    hostname,
    host,
    method: given.method ?? "POST",
    body,
    headers: given.headers ?? null,
    dedupe: given.dedupe ?? null,
    idempotencyKey: key,
    retries: given.retries ?? RETRIES_DEFAULT,
    onUnknown: given.on_unknown ?? "retry",
    approve: given.approve ?? false,
    callback: given.callback ?? null,
    notifyEmail: given.notify?.email ?? null,
    title: null,
    extras: NO_EXTRAS,
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
