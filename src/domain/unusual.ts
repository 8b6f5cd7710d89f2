import type { Action } from "./action.ts";

/** What makes somebody look twice at a request that they are asked to approve. */
export const UNUSUAL = ["deletes", "new_host"] as const;
export type Unusual = (typeof UNUSUAL)[number];

/** What is unusual about a request of an account that has called these hosts before. */
export function unusualOf(
  { method, hostname }: Pick<Action, "method" | "hostname">,
  calledHosts: ReadonlySet<string>,
): readonly Unusual[] {
  const is: Readonly<Record<Unusual, boolean>> = { deletes: method === "DELETE", new_host: !calledHosts.has(hostname) };
  return UNUSUAL.filter((kind) => is[kind]);
}
