import type { Address } from "../core/addresses.ts";
import type { NotSent, Outcome } from "../core/outcome.ts";
import type { HttpMethod } from "../core/target.ts";

/** One complete HTTP request, to which only `Host` and framing are added. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: HttpMethod;
  /** In the order in which they are sent, names as written. The sender adds `Host` and framing. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array<ArrayBuffer> | null;
}

/** How a request is about to leave. */
export interface Route {
  readonly isHttps: boolean;
  /** The address, which was checked and has answered. */
  readonly address: Address;
}

/** The parts of an answer that say whether its body can be searched. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Pick<Headers, "get" | "has">;
}

/** Masks what an answer may not show. */
export interface AnswerMask {
  /** Masks the beginning of a text, at least its first `charsMax` characters. */
  maskStart(text: string, charsMax: number): Promise<string>;
  /** Masks a body; bytes: they are shown as they are. Null: it can't be searched, so it is withheld. */
  maskBody(bytes: Uint8Array, isCut: boolean, head: AnswerHead): Promise<string | Uint8Array | null>;
}

/** The whole request, with what was added in the last step, and what its answer may not show. */
export interface Completed {
  readonly headers: OutboundRequest["headers"];
  readonly mask: AnswerMask;
}

export interface SendLimits {
  /** One deadline for resolving, finding an address that accepts, connecting, TLS, sending and reading the whole answer. */
  readonly timeoutMs: number;
  /** Ends the attempt early: as `stopped` when no byte can have left, otherwise as `unknown` with `interrupted`. */
  readonly stop?: AbortSignal;
  /**
   * Called right before the request is handed to its connection, after the name was resolved and an address has answered, and
   * again for each further address. Resolves when the call may leave. False: nothing is sent, and it ends as `stopped`.
   */
  readonly mayBegin?: () => boolean | Promise<boolean>;
  /** Completes the request right before `mayBegin`, or says why it is not sent. Nothing else sees what it adds. */
  readonly complete?: (route: Route) => Promise<Completed | NotSent | Stopped>;
  /**
   * The account whose open connections a POST or PATCH may use and leave open. Null or omitted: it uses a new connection.
   */
  readonly keepFor?: string | null;
}

/** Stopped, or not allowed to begin, before any byte could leave. */
export interface Stopped {
  readonly kind: "stopped";
}

export const STOPPED: Stopped = { kind: "stopped" };

/**
 * Makes one HTTP call to an address that was checked, and never repeats it. Never throws: every failure is an outcome.
 */
export interface Sender {
  send(request: OutboundRequest, limits: SendLimits): Promise<Outcome | Stopped>;
}
