import { type Issue, DomainError, type ErrorCode } from "../core/domain-error.ts";
import {
  FORM_PAIRS_MAX,
  REQUEST_BODY_BYTES_MAX,
  DELAY_SECONDS_MAX,
  EXPIRES_AHEAD_MS_MAX,
  RUN_AT_AHEAD_MS_MAX,
  KEY_CHARS_MAX,
  METADATA_NAMES_MAX,
  METADATA_VALUE_CHARS_MAX,
  RETRIES_DEFAULT,
  WAIT_SECONDS_DEFAULT,
} from "../core/limits.ts";
import { elementsIn, membersIn } from "../core/json-values.ts";
import {
  encodeForm,
  type FormPair,
  BODY_MEMBERS,
  type BodyMember,
  bodyMemberJson,
  usedBodyMember,
  type BodyKind,
} from "../core/body.ts";
import { type Action, type ActionRequest, extrasText, NO_EXTRAS, ownRetrySettings, textsIn } from "../core/action.ts";
import { retrySettingsJson } from "../api/retry-settings.ts";
import { headerIssues } from "../api/call-headers.ts";
import { isJsonObject, isStorableText } from "../core/json.ts";
import type { CheckTarget } from "../config/target-policy.ts";
import type { Role } from "../core/roles.ts";
import { NOT_IN_SYNC } from "../core/policy.ts";
import { CreateActionBody } from "../api/action-schemas.ts";
import { compile, onePerField, withoutNulls } from "../api/check.ts";
import type { Extras } from "../core/extras-schema.ts";
import { NO_RETRY_SETTINGS } from "../core/retry.ts";

type AllowedTarget = Pick<ActionRequest, "hostname" | "host">;

export interface CreateRules {
  readonly checkTarget: CheckTarget;
}

/** A create before validation. */
export interface CreateInput {
  readonly value: unknown;
  /** The JSON text of one of its members, with numbers as written and names in their order. */
  readonly bodyText: (member: "body" | "json" | "form") => string;
  readonly idempotencyKey: string | null;
  /** Whether the key is from a header; several headers arrive joined by a comma and a space. */
  readonly isKeyHeader?: boolean;
  /** The role of the caller or, if a person repeats the request of a key, of that key. */
  readonly role: Role;
  readonly now: Date;
  /** How long a synchronous answer waits. Default: `WAIT_SECONDS_DEFAULT`. */
  readonly waitSeconds?: number | undefined;
}

export interface CheckedCreate {
  readonly request: ActionRequest;
  readonly sync: boolean;
  /** Why the call is requested, as in the request's extras; null: not given. */
  readonly reason: string | null;
  /** The name of its credential, which `ActionService.create` adds to the request. Null: not given. */
  readonly credential: string | null;
  /** Why it is too late for a new action, although a repeat may find its older one by a key. Null: it is not. */
  readonly overdue: Issue | null;
}

const CREATE = compile(CreateActionBody);

/**
 * Validates a create. Throws with all issues at once, under the first of these codes that applies: `missing_field`,
 * `invalid_url`, `invalid_sync`, `validation_error`.
 */
export function createCheckCreate({ checkTarget }: CreateRules) {
  return (input: CreateInput): CheckedCreate => {
    const { value, bodyText, idempotencyKey, role, now, waitSeconds = WAIT_SECONDS_DEFAULT } = input;
    const given = withoutNulls(value, NULL_IS_ABSENT);
    const fields = isJsonObject(given) ? given : {};
    // Rules that a schema can't express. Each checks only fields of the right type; the schema reports the others.
    const broken: Issue[] = [];
    const note: Note = (field, message) => void broken.push({ field, message });
    const checkUrl = (field: "url" | "callback"): AllowedTarget | null => {
      const url = fields[field];
      const checked = typeof url === "string" ? checkTarget(url) : null;
      if (checked === null || "host" in checked) return checked;
      note(field, checked.refused);
      return null;
    };
    const target = checkUrl("url");
    checkUrl("callback");
    const times = readTimes(fields, now);
    checkSync(fields, times, now.getTime() + waitSeconds * 1_000, note);
    broken.push(...times.issues);
    checkBodies(fields, note);
    const form = isJsonObject(fields["form"]) ? readFormBody(bodyText("form")) : null;
    if (form !== null && "issues" in form) broken.push(...form.issues);
    checkTextBodies(fields, note);
    checkMetadata(fields, note);
    checkHeaders(fields, role, broken);
    const key = idempotencyKey === null ? null : keyIn(idempotencyKey);
    if (key === undefined) note("Idempotency-Key", `Must be 1 to ${KEY_CHARS_MAX} printable ASCII characters.`);
    const isUnquoted = key === idempotencyKey;
    if (input.isKeyHeader === true && isUnquoted && key?.includes(", ") === true) note("Idempotency-Key", REPEATED_KEY);
    const { overdue } = times;
    if (overdue !== null && key === null && fields["dedupe"] === undefined) broken.push(overdue);
    if (broken.length === 0 && CREATE.accepts(given) && target !== null && key !== undefined) {
      const encoded = form !== null && "encoded" in form ? form.encoded : null;
      const request = toRequest(given, target, { ...requestBody(given, encoded, bodyText), times, key });
      const { sync = false, reason = null, credential = null } = given;
      return { request, sync, reason, credential, overdue };
    }
    const issues = onePerField([
      ...CREATE.issues(withoutChecked(given)),
      ...broken,
      ...(overdue === null ? [] : [overdue]),
    ]);
    const code = refusalCode(given, broken, issues);
    throw invalidCreate(code, issues);
  };
}

type Fields = Readonly<Record<string, unknown>>;

type Note = (field: string, message: string) => void;

/** In all members except `json`, null means absent; `json: null` is the value null. */
const { json: _json, ...NULL_IS_ABSENT } = CreateActionBody.properties;

/** Leaves out members whose own rules name each problem; the schema would check them a second time. */
function withoutChecked(given: unknown): unknown {
  if (!isJsonObject(given)) return given;
  const checked = ["headers", "form", "metadata"].filter((name) => isJsonObject(given[name]));
  if (given["body"] !== undefined) checked.push("body");
  return checked.length === 0 ? given : { ...given, ...Object.fromEntries(checked.map((name) => [name, {}])) };
}

/** `untilMs`: when the answer must come. The policy checks whether the caller's key has the request held. */
function checkSync(given: Fields, { runAt }: CreateTimes, untilMs: number, note: Note): void {
  if (given["sync"] !== true) return;
  if (runAt !== null && runAt.getTime() > untilMs) {
    note("sync", "Can't be true: the action is not sent before the end of the wait.");
  } else if (given["approve"] === true) note("sync", "Can't be true together with approve: true.");
}

/** The members with a body. A call may have one. */
function bodiesIn(given: Fields): readonly BodyMember[] {
  return BODY_MEMBERS.filter((member) => given[member] !== undefined);
}

function checkBodies(given: Fields, note: Note): void {
  const { body, method } = given;
  // A text or list as `body` is a common mistake, so say where it belongs.
  if (body !== undefined && !isJsonObject(body)) {
    note("body", "Must be a JSON object. Give a text as text, and any other JSON value as json.");
  }
  const [first, ...others] = bodiesIn(given);
  if (first !== undefined && method === "GET") {
    for (const field of [first, ...others]) {
      note(field, "Can't be sent with GET: HTTP gives the body of a GET no meaning.");
    }
  } else for (const field of others) note(field, `Can't go with ${first}: a call has one body.`);
}

/** Bodies that are stored as they are given. */
function checkTextBodies({ text, base64 }: Fields, note: Note): void {
  if (typeof text === "string" && !isStorableText(text)) {
    note("text", "Must be well-formed Unicode without NUL: give other bytes as base64.");
  }
  if (typeof base64 === "string" && Buffer.from(base64, "base64").toString("base64") !== base64) {
    note("base64", "Must be base64 with padding, without white space (RFC 4648, section 4).");
  }
}

/** `METADATA_NAME_PATTERN`, written out because the linter checks patterns without following imports. */
const METADATA_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

function checkMetadata({ metadata }: Fields, note: Note): void {
  if (!isJsonObject(metadata)) return;
  const entries = Object.entries(metadata);
  for (const [name, value] of entries) {
    const problem = metadataProblem(name, value);
    if (problem !== null) note(`metadata.${name}`, problem);
  }
  if (entries.length > METADATA_NAMES_MAX) note("metadata", `Has more than ${METADATA_NAMES_MAX} names.`);
}

function metadataProblem(name: string, value: unknown): string | null {
  if (!METADATA_NAME.test(name)) return "Is not a name: use 1 to 64 letters, digits, and _ . or -.";
  if (typeof value !== "string") return "Must be a string.";
  if (value.length > METADATA_VALUE_CHARS_MAX) return `Is longer than ${METADATA_VALUE_CHARS_MAX} characters.`;
  return isStorableText(value) ? null : "Must be well-formed Unicode without NUL.";
}

function checkHeaders(given: Fields, role: Role, issues: Issue[]): void {
  const { headers } = given;
  if (!isJsonObject(headers)) return;
  const entries = Object.entries(headers);
  for (const [name, value] of entries) {
    if (typeof value !== "string") issues.push({ field: `headers.${name}`, message: "Must be a string." });
  }
  // A value that is no text counts as an empty one here.
  const texts = entries.map(([name, value]) => [name, typeof value === "string" ? value : ""] as const);
  issues.push(...headerIssues(Object.fromEntries(texts), bodiesIn(given)[0] ?? null, role));
}

type Code = Extract<ErrorCode, "missing_field" | "invalid_url" | "invalid_sync" | "validation_error">;

/** The error for a request with these problems. */
export function invalidCreate(code: Code, issues: readonly Issue[]): DomainError {
  return new DomainError(code, MESSAGES[code], issues);
}

const MESSAGES: Readonly<Record<Code, string>> = {
  missing_field: "The field url is required.",
  invalid_url: "No call may go to this URL.",
  invalid_sync: NOT_IN_SYNC,
  validation_error: "The request has fields that are not valid.",
};

function refusalCode(given: unknown, rules: readonly Issue[], issues: readonly Issue[]): Code {
  if (!isJsonObject(given)) return "validation_error";
  if (given["url"] === undefined) return "missing_field";
  if (issues.some(({ field }) => field === "url" || field === "callback")) return "invalid_url";
  return rules.some(({ field }) => field === "sync") ? "invalid_sync" : "validation_error";
}

interface RequestBody {
  readonly body: string | null;
  readonly kind?: BodyKind;
}

/** The body as it is stored. `form` is encoded already. */
function requestBody(
  { body, json, text, base64 }: CreateActionBody,
  form: string | null,
  bodyText: CreateInput["bodyText"],
): RequestBody {
  if (body !== undefined) return { body: bodyText("body") };
  if (json !== undefined) return { body: bodyText("json"), kind: "json" };
  if (form !== null) return { body: form, kind: "form" };
  if (text !== undefined) return { body: text, kind: "text" };
  return base64 === undefined ? { body: null } : { body: base64, kind: "base64" };
}

function toRequest(
  given: CreateActionBody,
  { hostname, host }: AllowedTarget,
  { body, kind, times, key }: RequestBody & { readonly times: CreateTimes; readonly key: string | null },
): ActionRequest {
  const { backoff } = given;
  const { metadata = {}, ...texts } = textsIn(given);
  const extras: Extras = {
    ...(kind === undefined ? {} : { bodyKind: kind }),
    ...texts,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(given.timeout_ms === undefined ? {} : { timeoutMs: given.timeout_ms }),
    ...(backoff === undefined ? {} : { backoff: { baseMs: backoff.base_ms, capMs: backoff.cap_ms } }),
    ...(given.give_up_on === undefined ? {} : { giveUpOn: given.give_up_on }),
    ...(times.runAt === null ? {} : { runAt: times.runAt.getTime() }),
    ...(given.delay_seconds === undefined ? {} : { delaySeconds: given.delay_seconds }),
  };
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
    expiresAt: times.expiresAt,
    title: given.title ?? null,
    extras: extrasText(extras) === null ? NO_EXTRAS : extras,
  };
}

/** Left out of a copy: with the same value, the target would take both calls for one. */
const IDEMPOTENCY_HEADER = "idempotency-key";

/**
 * A create that repeats an action as a new one. The caller validates it like any other, since rules and settings may have
 * changed. It keeps the request and its options, `approve` included, but neither `dedupe`
 * nor any idempotency key, and none of its times.
 */
export function toCreateInput(action: Action, now: Date): CreateInput {
  const { url, method, headers } = action;
  const kept = Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() !== IDEMPOTENCY_HEADER);
  const member = usedBodyMember(action);
  const json = bodyMemberJson(action) ?? "null";
  const parsed: unknown = JSON.parse(json);
  const value = {
    url,
    method,
    ...(member === null ? {} : { [member]: parsed }),
    headers: kept.length === 0 ? null : Object.fromEntries(kept),
    ...createOptions(action),
    dedupe: null,
    // The reason was the original's.
    reason: null,
  };
  return { value, bodyText: () => json, idempotencyKey: null, role: action.creator.role, now };
}

/** The options of a create that makes an action like this one, without the call, its body and its times. */
export function createOptions(action: Action) {
  const { title, extras, dedupe, retries, onUnknown, approve, callback, notifyEmail } = action;
  return {
    title: title ?? undefined,
    ...textsIn(extras),
    dedupe: dedupe ?? undefined,
    retries: retries === RETRIES_DEFAULT ? undefined : retries,
    ...retrySettingsJson(ownRetrySettings(extras) ?? NO_RETRY_SETTINGS),
    credential: extras.credential?.name,
    on_unknown: onUnknown === "stop" ? onUnknown : undefined,
    approve: approve || undefined,
    callback: callback ?? undefined,
    notify: notifyEmail === null ? undefined : { email: notifyEmail },
  } satisfies Record<OptionName, unknown>;
}

type OptionName = Exclude<
  keyof CreateActionBody,
  | BodyMember
  | keyof ReturnType<typeof retrySettingsJson>
  | keyof ReturnType<typeof textsIn>
  | ("url" | "method" | "headers")
  | ("sync" | "run_at" | "delay_seconds" | "expires_at")
>;

const PRINTABLE = /^[ -~]+$/;

/** The form of the Idempotency-Key draft: a structured-field string (RFC 9651, 3.3.3). */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/** The refusal of two keys: a create with `a` and `b` would match neither creates with `a` nor with `b`, and send again. */
const REPEATED_KEY =
  "Send it once: it arrived twice, or has a comma and a space. A key with those must be in double quotes.";

/** The key in an `Idempotency-Key` header, without quotes; undefined: it is no key. */
function keyIn(header: string): string | undefined {
  const quoted = QUOTED.exec(header)?.[1];
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(["\\])/g, "$1");
  return key.length <= KEY_CHARS_MAX && PRINTABLE.test(key) ? key : undefined;
}

/** When an action may be sent, and what is wrong with the times in its create. */
interface CreateTimes {
  /** Not before this time, which may be past; null: at once. */
  readonly runAt: Date | null;
  /** Not from this time on; null: no limit. */
  readonly expiresAt: Date | null;
  readonly issues: readonly Issue[];
  /** See `CheckedCreate`. */
  readonly overdue: Issue | null;
}

/** Reads `run_at`, `delay_seconds` and `expires_at` if they have the right type; the schema reports the others. */
export function readTimes(given: Readonly<Record<string, unknown>>, now: Date): CreateTimes {
  const [runAtText, delay, expiresText] = [given["run_at"], given["delay_seconds"], given["expires_at"]];
  if (runAtText === undefined && delay === undefined && expiresText === undefined) return NO_TIMES;
  const issues: Issue[] = [];
  const note = (field: string, message: string) => void issues.push({ field, message });
  const nowMs = now.getTime();

  const asked = timeIn(runAtText);
  if (asked === "invalid") note("run_at", "Is not a date and time.");
  const runAtGiven = asked === "invalid" ? null : asked;
  if (runAtGiven !== null && runAtGiven.getTime() > nowMs + RUN_AT_AHEAD_MS_MAX)
    note("run_at", "Must be within a year.");
  if (runAtText !== undefined && delay !== undefined) note("delay_seconds", "Can't go with run_at.");
  const isDelay = typeof delay === "number" && Number.isInteger(delay) && delay >= 1 && delay <= DELAY_SECONDS_MAX;
  const runAt = runAtGiven ?? (isDelay ? new Date(nowMs + delay * 1_000) : null);

  const expiresAt = timeIn(expiresText);
  if (expiresAt === "invalid") note("expires_at", "Is not a date and time.");
  if (expiresAt === "invalid" || expiresAt === null) return { runAt, expiresAt: null, issues, overdue: null };
  let overdue: string | null = null;
  if (expiresAt.getTime() <= nowMs) overdue = "Must be in the future.";
  else if (runAt !== null && expiresAt <= runAt) {
    if (isDelay) overdue = "Must be after the end of delay_seconds.";
    else note("expires_at", "Must be after run_at.");
  } else if (expiresAt.getTime() > nowMs + EXPIRES_AHEAD_MS_MAX) note("expires_at", "Must be within two years.");
  return { runAt, expiresAt, issues, overdue: overdue === null ? null : { field: "expires_at", message: overdue } };
}

const NO_TIMES: CreateTimes = { runAt: null, expiresAt: null, issues: [], overdue: null };

/** Reads a time. Null: it is no text. */
function timeIn(text: unknown): Date | "invalid" | null {
  if (typeof text !== "string") return null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? "invalid" : at;
}

/** A form as it is sent, or what is wrong with it. */
type ReadFormBody = { readonly encoded: string } | { readonly issues: readonly Issue[] };

/** Reads the JSON text of a `form`, an object without white space. The pairs keep its order. */
export function readFormBody(json: string): ReadFormBody {
  const pairs: FormPair[] = [];
  const issues: Issue[] = [];
  for (const [name, text] of membersIn(json)) {
    const problem = (name.isWellFormed() ? null : NOT_WELL_FORMED) ?? addPairs(pairs, name, text);
    if (problem !== null) issues.push({ field: `form.${name.toWellFormed()}`, message: problem });
    if (pairs.length > FORM_PAIRS_MAX) return refused(`Has more than ${FORM_PAIRS_MAX} pairs of a name and a value.`);
  }
  if (issues.length > 0) return { issues };
  const encoded = encodeForm(pairs);
  return encoded.length > REQUEST_BODY_BYTES_MAX
    ? refused(`Is longer than ${REQUEST_BODY_BYTES_MAX} bytes in the encoding of forms.`)
    : { encoded };
}

/** Adds the pairs of one name. Returns what is wrong with its value, or null. */
function addPairs(pairs: FormPair[], name: string, text: string): string | null {
  const values = text.startsWith("[") ? elementsIn(text) : [text];
  for (const written of values) {
    if (!written.startsWith('"')) return "Must be a string or a list of strings.";
    const value = String(JSON.parse(written));
    if (!value.isWellFormed()) return NOT_WELL_FORMED;
    pairs.push([name, value]);
    if (pairs.length > FORM_PAIRS_MAX) return null;
  }
  return null;
}

const NOT_WELL_FORMED = "Must be well-formed Unicode: forms are sent as UTF-8.";

function refused(message: string): ReadFormBody {
  return { issues: [{ field: "form", message }] };
}
