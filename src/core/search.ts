import type { Action, ActionStatus, Result, RequesterTextName } from "./action.ts";
import type { Actor } from "./roles.ts";
import type { HttpMethod } from "./target.ts";
import { type ErrorKind, errorKind, type OutcomeKind } from "./outcome.ts";

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
export function urlPath(url: string): string {
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
      .includes(text) || holdsText(host + urlPath(url), text)
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
  return error === null || errorKind(result) === error;
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

export interface ActionQuery {
  readonly accountId: string;
  /** Empty: any. */
  readonly statuses: readonly ActionStatus[];
  readonly method: HttpMethod | null;
  /** A host name (any port), or a host name with a port. */
  readonly host: string | null;
  readonly dedupe: string | null;
  /** Id of a key. */
  readonly createdBy: string | null;
  readonly createdAfter: Date | null;
  readonly createdBefore: Date | null;
  /** Conditions that no index serves. */
  readonly search: Search;
  /** How the texts are searched; absent or null: as they were written. */
  readonly seenAs?: MaskedTexts | null;
  /** Only actions older than this id. */
  readonly before: string | null;
  readonly limit: number;
  /** Limit of the bytes of bodies and headers on a page, by default `LIST_BYTES_MAX`; one action always fits. */
  readonly bytesMax?: number;
}

/** What lists of an account can be filtered by. */
export interface FilterValues {
  /** Host names, without ports. */
  readonly hosts: readonly string[];
  /** Keys, with the name that the newest action of each has. */
  readonly creators: readonly { readonly keyId: string; readonly createdBy: Actor }[];
}

export interface ActionRows {
  /** Newest first. */
  readonly actions: readonly Action[];
  /**
   * `before` of the next page; null when there is none. A page may have fewer than `limit` actions and not be the last.
   */
  readonly before: string | null;
  /** If the search stopped before the page was full: when the last action that it looked at was created; else null. */
  readonly searchedUntil: Date | null;
}

/** How many actions a query finds, up to a bound. */
export interface Counted {
  readonly count: number;
  /** There may be more. */
  readonly isMore: boolean;
}

export interface CountedRows extends Counted {
  /** When the last action that it looked at was created, if it stopped at the bound of its rows; else null. */
  readonly searchedUntil: Date | null;
}

/** An action that a bulk job would cover. */
interface MatchedAction {
  readonly id: string;
  readonly run: number;
  readonly host: string;
  /** The status that its newest attempt was answered with; null: none. */
  readonly responseCode: number | null;
}

/** Actions that match a query, newest first. */
export interface MatchedActions {
  readonly actions: readonly MatchedAction[];
  /** There may be more. */
  readonly isMore: boolean;
}
