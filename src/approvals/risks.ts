import { type Action, formatSize, isLateSuccess, REQUESTER_TEXTS, requesterTexts } from "../core/action.ts";
import { usedBodyMember, formPairs, sentBytes } from "../core/body.ts";
import { type MethodOverride, methodOverrides, plainHeaderName } from "../core/method-overrides.ts";
import { type Actor, describeActor } from "../core/roles.ts";
import {
  EARLIER_REJECTIONS_SHOWN_MAX,
  RISK_DECODED_CHARS_MAX,
  RISK_OVERRIDES_SHOWN_MAX,
  RISK_REASON_CHARS_MAX,
  SIMILAR_REJECTIONS_COUNTED_MAX,
  USUAL_BODY_BYTES_MAX,
  USUAL_HEADERS_BYTES_MAX,
  USUAL_URL_CHARS_MAX,
} from "../core/limits.ts";
import { decodeUnreserved, normalTarget, sentUrl } from "../core/target.ts";
import type { EarlierRejection } from "../core/rejections.ts";
import { timeAgo } from "../core/clock.ts";
import { hasUnseen, withoutLinks } from "../receipts/visible-text.ts";

/** The risks that an approver is warned of, in the order in which they are shown. */
export const RISKS = [
  "already_done",
  "key_revoked",
  "key_expired",
  "rejected",
  "credential",
  "hidden_characters",
  "mixed_scripts",
  "coded_letters",
  "hidden_values",
  "callback_host",
  "deletes",
  "other_method",
  "size",
  "similar_rejected",
  "new_host",
] as const;

/** `danger`: something is wrong; `warning`: something is unusual; `note`: worth knowing. */
export const RISK_LEVELS = ["danger", "warning", "note"] as const;

type RiskName = (typeof RISKS)[number];

const DANGERS: ReadonlySet<RiskName> = new Set(["already_done", "key_revoked", "key_expired", "rejected"]);

/** A first call to a host is only a note: it is nothing unusual in itself. */
function riskLevel(name: RiskName): (typeof RISK_LEVELS)[number] {
  if (DANGERS.has(name)) return "danger";
  return name === "new_host" ? "note" : "warning";
}

/** What can happen to a credential between the request and the send. */
export type CredentialState = "changed" | "disabled" | "expired" | "deleted";

export interface KeyEnd {
  readonly kind: "revoked" | "expired";
  /** Who revoked it, masked when shown; null for nobody, or if unknown. */
  readonly by: Actor | null;
  readonly agoMs: number;
}

interface Risk {
  readonly name: RiskName;
  readonly level: (typeof RISK_LEVELS)[number];
  /**
   * A sentence. Its only untrusted texts are names of hosts, headers and people, the masked path of the URL, and the reason of
   * a rejection, in which no client finds a link.
   */
  readonly text: string;
}

/** A request as it is stored. */
export interface RiskInput extends Pick<
  Action,
  "method" | "url" | "host" | "hostname" | "headers" | "body" | "callback" | "title" | "extras" | "run" | "lateResult"
> {
  /** The URL as the person who decides may see it. */
  readonly seenUrl: string;
  readonly createdBy: Actor;
  readonly reason: string | null;
  /** No approved call of its key to its host has completed so far. */
  readonly isNewHost: boolean;
  /** What has happened to its credential since the request; null: nothing, or it has none. */
  readonly credentialState: CredentialState | null;
  readonly keyEnd: KeyEnd | null;
  /** Earlier rejections of this same request, oldest first, masked. */
  readonly rejections: readonly Pick<EarlierRejection, "kind" | "by" | "reason">[];
  readonly similarRejections: number;
  /** How many values outside the headers the person who decides doesn't see. Left out: nobody decides. */
  readonly hiddenOutsideHeaders?: number;
}

/** The risks of a request. Pure; linear in the length of its texts. */
export function findRisks(request: RiskInput): Risk[] {
  const texts = requestTexts(request);
  const overrides = methodOverrides(request).filter(({ method }) => method !== request.method);
  const hidden = texts.filter(([, text]) => hasUnseen(text)).map(([part]) => part);
  const mixed = [
    ...(request.hostname.split(".").some((label) => label.startsWith("xn--")) ? ["the host"] : []),
    ...texts.filter(([, text]) => MIXED.test(text)).map(([part]) => part),
  ];
  const { keyEnd, similarRejections, hiddenOutsideHeaders = 0 } = request;
  const risks: Readonly<Record<RiskName, string | null>> = {
    already_done: doneText(request),
    key_revoked: keyEnd?.kind === "revoked" ? revokedText(keyEnd) : null,
    key_expired: keyEnd?.kind === "expired" ? `Key expired ${timeAgo(keyEnd.agoMs)}.` : null,
    rejected: rejectedText(request),
    similar_rejected:
      similarRejections === 0
        ? null
        : `Similar requests of this key were rejected ${timesText(similarRejections, SIMILAR_REJECTIONS_COUNTED_MAX)} in 24 h.`,
    credential: credentialText(request),
    new_host: request.isNewHost
      ? `New host: no approved call of this key to ${request.host} has completed so far.`
      : null,
    deletes: deletionRisk(request, overrides),
    other_method: otherMethod(overrides),
    hidden_characters: hidden.length === 0 ? null : `Characters that cannot be seen are in ${LIST.format(hidden)}.`,
    mixed_scripts: mixed.length === 0 ? null : `Letters that can pass for others are in ${LIST.format(mixed)}.`,
    coded_letters: CODED_LETTER.test(request.seenUrl)
      ? `Plain letters of the URL are percent-encoded. Decoded, its path is ${decodeUnreserved(pathIn(request.seenUrl))}`
      : null,
    size: sizeRisk(request),
    hidden_values: hiddenText(hiddenOutsideHeaders),
    callback_host: callbackRisk(request),
  };
  return RISKS.flatMap((name) => {
    const text = risks[name];
    return text === null ? [] : [{ name, level: riskLevel(name), text }];
  });
}

/** "a, b and c" */
const LIST = new Intl.ListFormat("en-GB");

function credentialText({ credentialState, extras: { credential } }: RiskInput): string | null {
  if (credentialState === null || credential === undefined) return null;
  const { name } = credential;
  if (credentialState === "changed") return `Where its credential ${name} may go was changed since it was requested.`;
  const what = { disabled: "is disabled", expired: "has expired", deleted: "was deleted" }[credentialState];
  return `Its credential ${name} ${what}: nothing would be sent.`;
}

function revokedText({ by, agoMs }: KeyEnd): string {
  return `Key revoked${by === null ? "" : ` by ${describeActor(by).name}`}, ${timeAgo(agoMs)}.`;
}

/** Quotes the reason of the last rejection, since it says what is wrong with the request. */
function rejectedText({ rejections }: RiskInput): string | null {
  const rejected = rejections.filter(({ kind }) => kind === "rejected");
  const last = rejected.at(-1);
  if (last === undefined) return null;
  const times = timesText(rejected.length, EARLIER_REJECTIONS_SHOWN_MAX);
  const by = `${rejected.length === 1 ? "by" : "last by"} ${describeActor(last.by).name}`;
  const reason = rejectionReason(rejections);
  return `This same request was rejected ${times} in 24 h, ${by}${reason === null ? "." : `: “${reason}”`}`;
}

/** The beginning of the last rejection's reason, without anything that a client could make a link of; null: no reason. */
export function rejectionReason(rejections: RiskInput["rejections"]): string | null {
  const reason = rejections.findLast(({ kind }) => kind === "rejected")?.reason ?? null;
  if (reason === null) return null;
  const beginning = reason.slice(0, RISK_REASON_CHARS_MAX).toWellFormed();
  return withoutLinks(beginning) + (reason.length > RISK_REASON_CHARS_MAX ? "…" : "");
}

function hiddenText(count: number): string | null {
  if (count === 0) return null;
  return count === 1 ? "1 value outside the headers is hidden." : `${count} values outside the headers are hidden.`;
}

/** "once", "3 times"; from `countedMax` on, "at least 10 times". */
function timesText(count: number, countedMax: number): string {
  if (count === 1) return "once";
  return `${count >= countedMax ? "at least " : ""}${count} times`;
}

/** Warns if a late answer shows that an earlier run succeeded: the target would do it again. */
function doneText({ run, lateResult }: RiskInput): string | null {
  if (lateResult === null || lateResult.run >= run || !isLateSuccess(lateResult)) return null;
  return `Run ${lateResult.run} was answered ${lateResult.responseCode}: the target has done this already.`;
}

/** The part of a URL after its host. */
function pathIn(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** A percent-encoded letter or digit, which needs no encoding in a URL. */
const CODED_LETTER = /%(?:3[0-9]|[46][1-9a-f]|[57][0-9a])/i;

function deletionRisk({ method, headers }: RiskInput, overrides: readonly MethodOverride[]): string | null {
  if (method === "DELETE") return "It deletes: the method is DELETE.";
  const names = Object.keys(headers ?? {}).filter((name) => NAMES_AN_OPERATION.has(plainHeaderName(name)));
  const name = names.find((one) => DELETION.test(headers?.[one] ?? ""));
  if (name !== undefined) return `It may delete: the header ${name} names such an operation.`;
  const override = overrides.find((one) => one.method === "DELETE");
  return override === undefined ? null : `It may delete: the ${override.place} names the method DELETE.`;
}

/** Leaves out DELETE, which is a risk of its own. */
function otherMethod(overrides: readonly MethodOverride[]): string | null {
  const others = overrides.filter(({ method }) => method !== "DELETE");
  const named = [...new Set(others.map(({ method, place }) => `the ${place} names ${method}`))];
  const more = named.length - RISK_OVERRIDES_SHOWN_MAX;
  const shown = [...named.slice(0, RISK_OVERRIDES_SHOWN_MAX), ...(more > 0 ? [`${more} more`] : [])];
  return named.length === 0 ? null : `Its target may take it for another method: ${LIST.format(shown)}.`;
}

/** Headers that make a target perform another operation than the method says. */
const NAMES_AN_OPERATION = new Set(["soapaction", "x-amz-target"]);

const DELETION = /delete|remove|destroy|drop|purge|terminate|truncate|erase|wipe/i;

function sizeRisk(request: RiskInput): string | null {
  const { url, headers } = request;
  const headerBytes = Object.entries(headers ?? {}).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const bodyBytes = sentBytes(request);
  const parts = [
    ...(url.length > USUAL_URL_CHARS_MAX ? [`a URL of ${url.length.toLocaleString("en")} characters`] : []),
    ...(headerBytes > USUAL_HEADERS_BYTES_MAX ? [`headers of ${formatSize(headerBytes)}`] : []),
    ...(bodyBytes > USUAL_BODY_BYTES_MAX ? [`a body of ${formatSize(bodyBytes)}`] : []),
  ];
  return parts.length === 0 ? null : `Unusually large: ${LIST.format(parts)}.`;
}

function callbackRisk({ callback, hostname }: RiskInput): string | null {
  const target = callback === null ? null : normalTarget(callback);
  return target === null || target.hostname === hostname ? null : `Its callback goes to another host: ${target.host}.`;
}

/** The texts that may contain hidden characters, decoded as the target reads them, each with the name of its part. */
function requestTexts(request: RiskInput): readonly (readonly [part: string, text: string])[] {
  const { url, headers, createdBy, reason } = request;
  const said = requesterTexts(request, reason);
  return [
    // An escaped line break or tab is invisible in a URL, so count it as a hidden character.
    ["the URL", unescapedUrl(sentUrl(url)).replaceAll(/[\n\t]/g, "\0")],
    [
      "the headers",
      Object.entries(headers ?? {})
        .flat()
        .join("\n"),
    ],
    ["the body", textOfBody(request)],
    ["the name of the key", createdBy],
    ...REQUESTER_TEXTS.map((name) => {
      const own = said.filter((one) => one.name === name);
      return [`the ${name}`, own.map(({ text }) => text ?? "").join("\n")] as const;
    }),
  ];
}

/**
 * The beginning of the body, decoded. A longer body is reported as unusually large; to decode twenty megabytes for one page
 * would hold up all other work. A text may be JSON to its target, and bytes may be text.
 */
function textOfBody(request: RiskInput): string {
  const { body } = request;
  const member = usedBodyMember(request);
  if (body === null) return "";
  // Four characters are three bytes.
  const charsMax = member === "base64" ? Math.ceil(RISK_DECODED_CHARS_MAX / 3) * 4 : RISK_DECODED_CHARS_MAX;
  const beginning = body.slice(0, charsMax);
  if (member === "form") return formPairs(beginning).flat().join("\n").replaceAll("\r", "");
  if (member === "base64") return unescapedJson(Buffer.from(beginning, "base64").toString("utf8"));
  return unescapedJson(beginning);
}

function unescapedUrl(url: string): string {
  const bytes = url.replaceAll(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** The text with its JSON escapes decoded; CR LF becomes LF. */
function unescapedJson(json: string): string {
  return json
    .replaceAll("\r", "")
    .replaceAll(/\\(?:u([0-9a-f]{4})|.)/gi, (escape, code?: string) =>
      code === undefined ? (ESCAPED[escape] ?? escape) : String.fromCharCode(Number.parseInt(code, 16)),
    );
}

/** The usual escapes; others stay as they are. */
const ESCAPED: Readonly<Record<string, string>> = {
  [String.raw`\n`]: "\n",
  [String.raw`\t`]: "\t",
  [String.raw`\r`]: "\n",
  [String.raw`\b`]: " ",
  [String.raw`\f`]: " ",
};

/** Scripts whose letters look like Latin ones, and mathematical letters, except Greek letters of formulas and units. */
const LIKE_LATIN = String.raw`[[\p{sc=Cyrillic}\p{sc=Greek}\p{sc=Armenian}\p{sc=Cherokee}\p{sc=Coptic}\p{sc=Lisu}\u{1d400}-\u{1d7ff}]--[ΔΩΣβλμπσ]]`;

/** A Latin letter next to one that looks like Latin. */
const MIXED = new RegExp(String.raw`\p{sc=Latin}\p{M}{0,4}${LIKE_LATIN}|${LIKE_LATIN}\p{M}{0,4}\p{sc=Latin}`, "v");
