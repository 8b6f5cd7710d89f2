import type { Result } from "./action.ts";
import type { RequesterTextName } from "./extras.ts";
import { type ErrorKind, errorKindOf, type OutcomeKind } from "./outcome.ts";

/** A condition on the metadata of an action. */
export interface MetadataFilter {
  readonly name: string;
  /** Null: any value. */
  readonly value: string | null;
}

/** The requester's texts that lists search. */
export const SEARCHED_TEXTS = ["title", "reason"] as const satisfies readonly RequesterTextName[];

type TextSearch = Readonly<Record<(typeof SEARCHED_TEXTS)[number], string | null>>;

/** What a list finds beyond its indexes; all conditions apply together. Null or empty: not given. */
export interface Search extends TextSearch {
  /** Only these; empty: any. */
  readonly ids: readonly string[];
  /** Text in host, path or title; or a status of the target, a class of statuses, or the start of an id. */
  readonly q: string | null;
  /** Any of these statuses and classes: `422`, `5xx`. */
  readonly responseCodes: readonly string[];
  /** The outcome of the run's newest attempt. */
  readonly outcome: OutcomeKind | null;
  readonly error: ErrorKind | null;
  /** The start of the path. */
  readonly path: string | null;
  readonly metadata: readonly MetadataFilter[];
}

export const NO_SEARCH: Search = {
  ids: [],
  q: null,
  responseCodes: [],
  outcome: null,
  error: null,
  path: null,
  title: null,
  reason: null,
  metadata: [],
};

/** Whether a text contains the other, ignoring case. */
export function holdsText(text: string | null, searched: string): boolean {
  return text !== null && text.toLowerCase().includes(searched.toLowerCase());
}

/** Path and query of a target as its caller wrote them; `/` where there is none. */
export function pathOf(url: string): string {
  const authority = url.indexOf("//") + "//".length;
  const rest = url.slice(authority).search(/[/?#]/);
  if (rest === -1) return "/";
  const path = url.slice(authority + rest);
  return path.startsWith("/") ? path : `/${path}`;
}

/** Whether host, path or id match the free text. The title may match it too. */
export function matchesPlace(q: string, { id, url, host }: Readonly<Record<"id" | "url" | "host", string>>): boolean {
  const text = q.toLowerCase().replace(/^https?:\/\//, "");
  if (id.startsWith(text) || id.slice("act_".length).startsWith(text)) return true;
  // The URL as it was written, and the host as the host filter takes it.
  return (
    url
      .slice(url.indexOf("//") + "//".length)
      .toLowerCase()
      .includes(text) || holdsText(host + pathOf(url), text)
  );
}

/** Whether the free text names the status of the target: `422`, `5xx`. */
export function matchesCode(q: string, responseCode: number | null): boolean {
  return responseCode !== null && namesCode([q.toLowerCase()], responseCode);
}

function namesCode(codes: readonly string[], responseCode: number): boolean {
  const code = String(responseCode);
  return codes.includes(code) || codes.includes(`${code.slice(0, 1)}xx`);
}

/** The start of an id, if it is long enough to be nothing else; else null. */
export function idPrefixIn(q: string | null): string | null {
  return q !== null && ID_PREFIX.test(q) ? q : null;
}

const ID_PREFIX = /^act_[0-9a-z]{4,64}$/;

type ShownResult = Pick<Result, "responseCode" | "errorSource" | "lastError">;

/** Whether the conditions on the result hold, except for the outcome. */
export function matchesResult({ responseCodes, error }: Search, result: ShownResult): boolean {
  const { responseCode } = result;
  if (responseCodes.length > 0) {
    if (responseCode === null || !namesCode(responseCodes, responseCode)) return false;
  }
  return error === null || errorKindOf(result) === error;
}

/** The lowest and the highest status that codes and classes name; null: they name none. */
export function codeRange(codes: readonly string[]): { readonly from: number; readonly to: number } | null {
  if (codes.length === 0) return null;
  return {
    from: Math.min(...codes.map((code) => Number(code.replace("xx", "00")))),
    to: Math.max(...codes.map((code) => Number(code.replace("xx", "99")))),
  };
}

/** Texts as a viewer sees them, for searches: hidden text must not be found out letter by letter. */
export interface MaskedTexts {
  url(url: string): string;
  text(text: string): string;
  /** Whether a value of metadata is shown as it is. */
  showsMetadata(name: string, value: string): boolean;
}
