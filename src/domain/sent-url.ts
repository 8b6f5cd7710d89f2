import { normalTarget } from "./normal-target.ts";

/** A URL as it is sent: its normal form, so that no letter or dot can pass for another, and without the fragment. */
export function sentUrl(url: string): string {
  const target = normalTarget(url);
  return target === null ? url : target.origin + target.rest;
}
