import { contains, parseAddress, parseRange } from "../outbound/address.ts";
import type { FaultOf } from "./kinds.ts";

/** What is wrong with an entry of TRUSTED_PROXIES. */
export const proxyFault: FaultOf = (value) => {
  const range = parseRange(value);
  if (range === null) return "has an entry that is no address range (no bits may be set behind the prefix)";
  return range.prefix === 0 ? "has an entry that holds every address: anybody could then write any" : null;
};

/** Whether an address is that of a proxy that these entries name. */
export function trustedProxiesOf(entries: readonly string[]): (address: string) => boolean {
  const ranges = entries.flatMap((entry) => parseRange(entry) ?? []);
  return (text) => {
    const address = ranges.length === 0 ? null : parseAddress(text);
    return address !== null && ranges.some((range) => contains(range, address));
  };
}

/** We speak no TLS: behind an https address there is a proxy. */
export function proxyWarnings(entries: readonly string[], baseUrl: URL | null): readonly string[] {
  if (baseUrl?.protocol !== "https:" || entries.length > 0) return [];
  return [
    "BASE_URL is https:// and TRUSTED_PROXIES is not set: everybody who comes through the proxy counts as one client at the log-in. Set it to the proxy's address.",
  ];
}
