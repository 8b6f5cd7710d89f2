import { expect } from "bun:test";
import { checkTarget, type TargetPolicy } from "../../src/config/target-policy.ts";
import { policyWith } from "./policies.ts";

/** Nothing private is open. */
export const CLOSED = policyWith();

/** What the URL is taken for: the sentence, or the host. */
export function verdict(url: string, policy = CLOSED): string {
  const checked = checkTarget(policy, url);
  return "refused" in checked ? checked.refused : checked.host;
}

/** Every URL is refused, by a sentence that holds the fragment. */
export function refuses(urls: readonly string[], fragment: string, policy: TargetPolicy = CLOSED): void {
  expect(urls.map((url) => [url, verdict(url, policy)])).toEqual(
    urls.map((url) => [url, expect.stringContaining(fragment)]),
  );
}

/** Every URL is accepted, as the host beside it. */
export function accepts(urls: Readonly<Record<string, string>>, policy: TargetPolicy = CLOSED): void {
  const checked = Object.keys(urls).map((url) => [url, verdict(url, policy)]);
  expect(checked).toEqual(Object.entries(urls));
}
