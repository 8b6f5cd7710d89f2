import type { CredentialBounds } from "../core/credential.ts";
import { methodsOf, type SentRequest } from "../core/method-overrides.ts";
import { isUnder, type SentTarget, sentTarget } from "../core/sent-target.ts";

/** Which bound a request lies outside of, and what of it does. */
interface OutOfBounds {
  readonly bound: keyof CredentialBounds;
  /** As it is sent. */
  readonly found: string;
}

/** What of a request lies outside of the bounds, as it is sent; null: nothing. A request that names another method counts as both. */
export function outOfBounds({ hosts, paths, methods }: CredentialBounds, request: SentRequest): OutOfBounds | null {
  const target = sentTarget(request.url);
  if (target === null) return { bound: "hosts", found: "this address" };
  if (!hosts.some((allowed) => isHost(allowed, target))) return { bound: "hosts", found: target.host };
  if (paths !== null && !paths.some((prefix) => isUnder(target, prefix))) return { bound: "paths", found: target.path };
  const method = methods === null ? undefined : methodsOf(request).find((one) => !methods.some((it) => it === one));
  return method === undefined ? null : { bound: "methods", found: method };
}

/** Label by label, with the port: a name that only ends alike is another one. A host without a port means the scheme's default. */
function isHost(allowed: string, { host }: SentTarget): boolean {
  if (!allowed.startsWith("*.")) return allowed === host;
  const below = allowed.slice(2).split(".").toReversed();
  const labels = host.split(".").toReversed();
  return labels.length > below.length && below.every((label, at) => label === labels[at]);
}

/** The bounds in words: "api.stripe.com, /v1/charges, POST". */
export function describeBounds({ hosts, paths, methods }: CredentialBounds): string {
  return [hosts.join(", "), paths?.join(", "), methods?.join(", ")].filter((text) => text !== undefined).join("; ");
}
