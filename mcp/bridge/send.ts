/** One HTTP request to /mcp. */
export interface Sent {
  readonly method: "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Sends it. Rejects when nothing came back. */
export type Send = (sent: Sent) => Promise<Response>;

/** The head of a message. */
export const JSON_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
} as const;
