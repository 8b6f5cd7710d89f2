/** Somebody or something that may change an action, as `approved_by` and the timeline name it (decisions 3). */
export type Actor = `email:${string}` | `user:${string}` | `key:${string}` | `mcp:${string}` | "system";

/** Acts for the service itself: the dispatcher, the rescue, the clock. */
export const SYSTEM: Actor = "system";

/** Who it is, and by which way they came in: what follows the first colon is a name that somebody chose. */
export function actorWords(actor: string): { readonly name: string; readonly way: string } {
  const colon = actor.indexOf(":");
  const name = actor.slice(colon + 1);
  const way = WAYS[actor.slice(0, Math.max(0, colon))];
  return way === undefined ? { name: "Outgate", way: "by its settings" } : { name, way };
}

const WAYS: Readonly<Record<string, string>> = {
  email: "by the link in the mail",
  user: "on the pages of Outgate",
  key: "over the API",
  mcp: "over MCP",
};
