import type { Visit } from "./visit.ts";

const GROUPS = 8;
/** A home or a server is given this much of an IPv6 address, and chooses the rest as it likes. */
const GROUPS_OF_CLIENT = 4;

/**
 * Who sends a request, as far as a count of them goes: the IPv4 address, or the /64 of an IPv6 one. What proxies write
 * down is not looked at, since anybody can write it (hostile 7 "Links"). Empty where no socket is behind the request.
 */
export function clientOf({ request, server }: Visit): string {
  return networkOf(server?.requestIP(request)?.address ?? "");
}

export function networkOf(address: string): string {
  // An IPv4 address can come as `::ffff:192.0.2.1`.
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, GROUPS - front.length - back.length) }, () => "0");
  return address === "" ? "" : [...front, ...zeros, ...back].slice(0, GROUPS_OF_CLIENT).join(":");
}
