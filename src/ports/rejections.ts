import type { Action } from "../domain/action.ts";
import type { RejectionCount, RequestHistory } from "../domain/rejections.ts";

/** A request of one key of an account. */
export interface RejectedRequest {
  readonly accountId: string;
  /** Of the key that created it. */
  readonly keyId: string;
  /** `rejectionDigest` of it. */
  readonly digest: string;
}

/**
 * What people have rejected within the last 24 hours, and how often that was asked for again. Rows are written with the
 * change that they tell of (`RejectionNote`), and the limit is a condition of that write.
 */
export interface RejectionStore {
  /** What counts of a request now. */
  count(request: RejectedRequest, now: Date): Promise<RejectionCount>;
  /** What was said about the request of an action before its present run, and why that is asked for. */
  earlier(
    action: Pick<Action, "id" | "run" | "accountId" | "keyId">,
    digest: string,
    now: Date,
  ): Promise<RequestHistory>;
  /** Forgets some of what counts no more; true when there is more. */
  prune(now: Date): Promise<boolean>;
}
