import type { HttpMethod } from "../domain/action.ts";
import type { Outcome } from "../domain/outcome.ts";

/** One HTTP request, complete: what is listed here goes out and nothing is added but framing. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: HttpMethod;
  /** In the order in which they are sent; names as written. `Host` and framing are the sender's. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
}

export interface SendLimits {
  /** One deadline for resolving, finding an address that accepts, connecting, TLS, sending and reading the whole answer. */
  readonly timeoutMs: number;
  /** Ends the attempt early: as `stopped` where no byte can have left, else as `unknown` and `interrupted`. */
  readonly stop?: AbortSignal;
}

/** The stop came before any byte could leave: nothing was tried. */
export interface Stopped {
  readonly kind: "stopped";
}

/** Makes one HTTP call, once, to an address that was judged. Never throws: whatever happens is an outcome. */
export interface Sender {
  send(request: OutboundRequest, limits: SendLimits): Promise<Outcome | Stopped>;
}
