import { METADATA_NAMES_MAX, EDITED_BODY_BYTES_MAX } from "../core/limits.ts";
import type { Action } from "../core/action.ts";
import { compactJson, prettyPrint, scanJson } from "../core/json.ts";
import { normalTarget, HTTP_METHODS } from "../core/target.ts";
import { maskedBody } from "../receipts/mask-body.ts";
import { type MaskedAction, storedAction } from "../receipts/seen-action.ts";
import { MASK, MASK_PATTERN, Masking } from "../receipts/mask-rules.ts";
import { maskHeaders, maskText, maskUrl } from "../receipts/masking.ts";
import { usedBodyMember, formJson, isJsonMember } from "../core/body.ts";
import { issuesText, withField } from "../api/errors.ts";
import { readFormBody } from "./create-schema.ts";

/** The parts of an action that a person can edit before it is sent again as a new one, as texts of fields. */
export interface EditedFields {
  readonly method: string;
  readonly url: string;
  readonly title: string;
  /** `Name: value`, one per line. */
  readonly headers: string;
  /** JSON, the fields of a form as JSON, or text; null: it can't be edited here and stays as it is. */
  readonly body: string | null;
}

/** What is wrong with the fields. */
type EditProblems = Readonly<Partial<Record<keyof EditedFields, string>>>;

/** The fields of an action as a page shows them: secrets are masked. */
export function fieldsToEdit(action: Action): EditedFields {
  const { url, title, headers, body } = editedTexts(action);
  const lines = headers.map(([name, { shown }]) => `${name}: ${shown}`);
  return {
    method: action.method,
    url: url.shown,
    title: title.shown,
    headers: lines.join("\n"),
    body: body?.shown ?? (action.body === null ? "" : null),
  };
}

/**
 * The edited action, for `toCreateInput`, or what is wrong. As long as a mask stays in a field, its hidden value is kept; a
 * mask itself is never sent. Hidden values go only to the origin for which they were written.
 */
export function editedCopy(
  seen: MaskedAction,
  edited: EditedFields,
): { readonly action: Action } | { readonly problems: EditProblems } {
  const action = storedAction(seen);
  const texts = editedTexts(action);
  const problems: { -readonly [Name in keyof EditedFields]?: string } = {};
  // An uneditable body is compared by its masked text, which saves masking a megabyte here.
  let usesHidden = edited.body === null && seen.body !== action.body;
  const meant = (field: keyof EditedFields, typed: string, known: Known): string => {
    const text = unmasked(typed, known, texts.secrets);
    if (text === null) problems[field] = STILL_MASKED;
    usesHidden ||= text !== null && text !== typed && known.shown.includes(MASK);
    return text ?? typed;
  };

  const url = meant("url", edited.url.trim(), texts.url);
  const title = meant("title", edited.title.trim(), texts.title);
  const knownHeaders = new Map(texts.headers.map(([name, known]) => [name.toLowerCase(), known]));
  const headers = new Map<string, string>();
  for (const line of edited.headers.split(/\r?\n/).filter((one) => one.trim() !== "")) {
    const [name, value] = headerIn(line);
    if (name === null)
      problems.headers = `Write each header as “Name: value”; this line is none: ${line.slice(0, LINE_CHARS)}`;
    else if (headers.has(name)) problems.headers = `Names the header ${name} twice.`;
    else headers.set(name, meant("headers", value, knownHeaders.get(name.toLowerCase()) ?? NEW));
  }
  const method = HTTP_METHODS.find((one) => one === edited.method);
  if (method === undefined) problems.method = `Choose one of ${HTTP_METHODS.join(", ")}.`;
  const typedBody =
    edited.body === null ? null : meant("body", edited.body.replaceAll("\r\n", "\n"), texts.body ?? NEW);
  const body = typedBody === null ? action.body : bodyToStore(action, typedBody);
  if (body !== null && typeof body === "object") problems.body = body.problem;
  if (usesHidden && !hasSameOrigin(url, action.url)) problems.url ??= OTHER_ORIGIN;
  if (Object.keys(problems).length > 0) return { problems };
  const { bodyKind, ...extras } = action.extras;
  const stored = body === null || typeof body === "object" ? null : body;
  const kind = stored === null || bodyKind === undefined ? {} : { bodyKind };
  return {
    action: {
      ...action,
      url,
      title: title === "" ? null : title,
      method: method ?? action.method,
      headers: headers.size === 0 ? null : Object.fromEntries(headers),
      body: stored,
      extras: { ...kind, ...extras, metadata: metadataOfCopy(action) },
    },
  };
}

const STILL_MASKED =
  "Some hidden values (••••) can't be kept in a changed text: replace each •••• with its value, or leave the field as it was.";

const OTHER_ORIGIN =
  "Hidden values (••••) are kept only for the same host: enter each of them again, or keep the host.";

const LINE_CHARS = 60;

/** A text as the page shows it, and as it is stored. */
interface Known {
  readonly shown: string;
  readonly whole: string;
  /** Masks are in JSON strings. */
  readonly isJson?: boolean;
}

const NEW: Known = { shown: "", whole: "" };

/** Masks for a decider and remembers what each mask hides; null: it hides several values. */
class RecordedMasking extends Masking {
  readonly secrets = new Map<string, string | null>();

  override hide(secret: string, kind: string): string {
    const mask = super.hide(secret, kind);
    const known = this.secrets.get(mask);
    if (mask !== secret) this.secrets.set(mask, known === undefined || known === secret ? secret : null);
    return mask;
  }
}

function editedTexts(action: Action) {
  const masking = new RecordedMasking("decider");
  const own = Object.entries(action.headers ?? {}).filter(([name]) => name.toLowerCase() !== "idempotency-key");
  const masked = maskHeaders(Object.fromEntries(own), masking);
  return {
    url: { shown: maskUrl(action.url, masking), whole: action.url },
    title: { shown: maskText(action.title ?? "", masking), whole: action.title ?? "" },
    headers: own.map(([name, whole]) => [name, { shown: masked[name] ?? "", whole }] as const),
    body: knownBody(action, masking),
    secrets: masking.secrets,
  };
}

/** The body as a field. Null: there is none, it is too long for a form, or it is bytes. */
function knownBody(action: Action, masking: Masking): Known | null {
  const member = usedBodyMember(action);
  const { body } = action;
  if (body === null || member === null || member === "base64" || body.length > EDITED_BODY_BYTES_MAX) return null;
  const shown = maskedBody(action, masking).body;
  if (shown === null) return null;
  const isJson = member !== "text";
  const print = (text: string) => (isJson ? prettyPrint(member === "form" ? formJson(text) : text) : text);
  const known = { shown: print(shown), whole: print(body), isJson };
  return encodeURIComponent(known.shown.toWellFormed()).length > EDITED_BODY_BYTES_MAX ? null : known;
}

/** The typed text with hidden values filled in; null: it has a mask whose value is not certain. */
function unmasked(typed: string, { shown, whole, isJson = false }: Known, secrets: ReadonlyMap<string, string | null>) {
  if (typed === shown.replaceAll(/\r\n?/g, "\n")) return whole;
  if (!typed.includes(MASK)) return typed;
  const fill = (text: string) =>
    text.replaceAll(MASK_PATTERN, (mask) => {
      // A mask from another field stays as it is.
      const secret = (shown.includes(mask) ? secrets.get(mask) : null) ?? mask;
      return isJson ? JSON.stringify(secret).slice(1, -1) : secret;
    });
  // It is certain what each mask hides only if filling in the shown text gives the stored one.
  if (fill(shown) !== whole) return null;
  const text = fill(typed);
  return text.includes(MASK) ? null : text;
}

function headerIn(line: string): readonly [name: string, value: string] | readonly [null, null] {
  const colon = line.indexOf(":");
  return colon < 1 ? [null, null] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
}

function hasSameOrigin(url: string, other: string): boolean {
  const origin = normalTarget(url)?.origin;
  return origin !== undefined && origin === normalTarget(other)?.origin;
}

/** The body in the form in which its kind is stored. A text that was emptied is no body. */
function bodyToStore(action: Action, text: string): string | null | { readonly problem: string } {
  if (text.trim() === "" && text !== action.body) return null;
  const member = usedBodyMember(action) ?? "body";
  if (member === "text") return withStoredBreaks(action.body ?? "", text);
  const json = toJsonText(text);
  if (json === null) return { problem: "Is not valid JSON." };
  if (isJsonMember(member)) return json;
  if (!json.startsWith("{")) return { problem: "Must be a JSON object with the fields of the form." };
  const form = readFormBody(json);
  if ("encoded" in form) return form.encoded;
  return { problem: issuesText(form.issues, withField) };
}

/** The typed text with the line breaks of the stored one, since forms send all of them as one kind. */
function withStoredBreaks(stored: string, typed: string): string | { readonly problem: string } {
  const breaks = new Set(stored.match(/\r\n?|\n/g));
  if (typed === stored || breaks.size === 0) return typed;
  const [only = "", ...others] = breaks;
  return others.length === 0 ? typed.replaceAll("\n", only) : { problem: MIXED_BREAKS };
}

const MIXED_BREAKS = "Has line breaks of several kinds, of which a form keeps one: leave the body as it was.";

/** The JSON text without white space; null: it is no JSON, or nested too deep. */
function toJsonText(text: string): string | null {
  const scan = scanJson(Buffer.from(text));
  if (scan === "too_deep" || scan === "too_many_members") return null;
  try {
    return compactJson(text);
  } catch {
    return null;
  }
}

/** The name in an action's metadata for the id of the action that it copies. */
export const COPY_OF = "copy_of";

/** The metadata of a copy: that of the original, and its id if there is room. */
export function metadataOfCopy({ id, extras }: Pick<Action, "id" | "extras">): Readonly<Record<string, string>> {
  const kept = { ...extras.metadata };
  const hasRoom = COPY_OF in kept || Object.keys(kept).length < METADATA_NAMES_MAX;
  return hasRoom ? { ...kept, [COPY_OF]: id } : kept;
}
