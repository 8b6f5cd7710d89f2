import { expect } from "bun:test";
import { createTargets, type Targets } from "../../src/outbound/target.ts";
import { policyWith } from "./policies.ts";

/** Nothing private is open. */
export const CLOSED = createTargets(policyWith());

/** What the URL is taken for: the sentence, or the host. */
export function verdict(url: string, targets = CLOSED): string {
  const checked = targets.checkTarget(url);
  return "refused" in checked ? checked.refused : checked.host;
}

/** Every URL is refused, by a sentence that holds the fragment. */
export function refuses(urls: readonly string[], fragment: string, targets: Targets = CLOSED): void {
  expect(urls.map((url) => [url, verdict(url, targets)])).toEqual(
    urls.map((url) => [url, expect.stringContaining(fragment)]),
  );
}

/** Every URL is accepted, as the host beside it. */
export function accepts(urls: Readonly<Record<string, string>>, targets: Targets = CLOSED): void {
  const checked = Object.keys(urls).map((url) => [url, verdict(url, targets)]);
  expect(checked).toEqual(Object.entries(urls));
}
