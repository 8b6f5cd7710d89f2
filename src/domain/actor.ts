/** Somebody or something that may change an action, as `approved_by` and the timeline name it (decisions 3). */
export type Actor = `email:${string}` | `user:${string}` | `key:${string}` | `mcp:${string}` | "system";

/** Acts for the service itself: the dispatcher, the rescue, the clock. */
export const SYSTEM: Actor = "system";
