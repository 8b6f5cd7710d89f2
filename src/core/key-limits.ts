import { DomainError, type Issue, TooEarly } from "./domain-error.ts";
import { DAY_MS, KEY_EXPIRY_YEARS_MAX } from "./limits.ts";
import { normalHost, type NormalTarget, normalTarget, type HttpMethod } from "./target.ts";
import { methodOverrides, type SentRequest } from "./method-overrides.ts";
import type { Caller, KeyLimits } from "./roles.ts";

/** The advice in every refusal. The limits of a key never change; another key can have other limits. */
const BY_OWNER =
  "An owner can create a key with other limits: on the page Keys, by `outgate keys create`, or by POST /v1/keys.";

/** Why a key may not make this call, or null. Its budget and expiry are checked elsewhere. */
export function limitRefusal({ hosts, methods }: KeyLimits, request: SentRequest): DomainError | null {
  const target = hosts === null ? null : normalTarget(request.url);
  if (hosts !== null && (target === null || !hosts.some((allowed) => isIn(allowed, target)))) {
    const host = target?.host ?? "this address";
    return new DomainError("forbidden", `This key may call only ${hosts.join(", ")}, and not ${host}. ${BY_OWNER}`);
  }
  return methods === null ? null : methodRefusal(methods, request);
}

/** Checks every method: a request that names another method counts as both. */
function methodRefusal(methods: readonly HttpMethod[], request: SentRequest): DomainError | null {
  const isRefused = (method: string) => !methods.some((one) => one === method);
  const other = isRefused(request.method)
    ? undefined
    : methodOverrides(request).find(({ method }) => isRefused(method));
  if (other === undefined && !isRefused(request.method)) return null;
  const what = other === undefined ? request.method : `${other.method}, which the ${other.place} names`;
  return new DomainError("forbidden", `This key may use only ${methods.join(", ")}, and not ${what}. ${BY_OWNER}`);
}

/** Whether a host is allowed. `*.example.com` is every name below it, not the name itself. Without a port, any port matches. */
function isIn(allowed: string, { hostname, port }: NormalTarget): boolean {
  // A call's host leaves out its scheme's default port, but a limit may name that port.
  const own = PORT.test(allowed) ? `${hostname}:${port}` : hostname;
  return allowed.startsWith("*.") ? own.endsWith(allowed.slice(1)) : own === allowed;
}

const PORT = /:\d{1,5}$/;

/** The error for a spent daily budget. It is 403, since clients would repeat a 429 in a second. */
export function budgetSpent(dailyActions: number, now: Date): DomainError {
  const again = new Date((utcDay(now) + 1) * DAY_MS);
  return new TooEarly(
    "forbidden",
    `This key may create ${dailyActions === 1 ? "1 action" : `${dailyActions} actions`} a day (UTC), retries included, and has done so. It may create or retry more from ${again.toISOString()}. ${BY_OWNER}`,
    again,
  );
}

/** The daily limit of a key: how many creates and retries, and the day (since 1970, UTC). */
export interface KeyBudget {
  readonly keyId: string;
  readonly limit: number;
  readonly day: number;
}

/** Days since 1970, UTC. */
export function utcDay(at: Date): number {
  return Math.floor(at.getTime() / DAY_MS);
}

/** What a create or retry takes from the key's daily limit. The store counts it in the same commit. */
export function keyBudget({ keyId, limits }: Pick<Caller, "keyId" | "limits">, now: Date): KeyBudget | null {
  const limit = limits?.dailyActions ?? null;
  return keyId === null || limit === null ? null : { keyId, limit, day: utcDay(now) };
}

/** Hosts in normal form, or what is wrong with them. */
export function readHosts(hosts: readonly string[]): {
  readonly hosts: readonly string[];
  readonly issues: readonly Issue[];
} {
  const normal = hosts.map((text) => {
    const isBelow = text.startsWith("*.");
    const host = normalHost(isBelow ? text.slice(2) : text);
    return host === null || host.includes("*") ? null : `${isBelow ? "*." : ""}${host}`;
  });
  const issues = normal.flatMap((host, at) => (host === null ? [{ field: `hosts.${at}`, message: NOT_A_HOST }] : []));
  return { hosts: [...new Set(normal.flatMap((host) => host ?? []))], issues };
}

const NOT_A_HOST =
  "Must be a host name or address, like api.example.com or 10.0.0.7:8080, or *.example.com for every name below.";

/** When a key ends, or what is wrong with the time. */
export function expiryIssues(expiresAt: Date, now: Date): readonly Issue[] {
  const latest = now.getTime() + KEY_EXPIRY_YEARS_MAX * 365 * DAY_MS;
  if (Number.isNaN(expiresAt.getTime())) return [{ field: "expires_at", message: "Must be a date that exists." }];
  if (expiresAt <= now) return [{ field: "expires_at", message: "Must be in the future." }];
  if (expiresAt.getTime() > latest) {
    return [{ field: "expires_at", message: `Must be at most ${KEY_EXPIRY_YEARS_MAX} years ahead.` }];
  }
  return [];
}

/** What is wrong with an expiry taken over from another key: a new key that has already expired would be useless. */
export function inheritedExpiryIssues({ expiresAt }: Pick<KeyLimits, "expiresAt">, now: Date): readonly Issue[] {
  if (expiresAt === null || expiresAt > now) return [];
  const message =
    "The key that it replaces has expired. Give a time in the future, or set inherit_limits: false for a key without an end.";
  return [{ field: "expires_at", message }];
}
