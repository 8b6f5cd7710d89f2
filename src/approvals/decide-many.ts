import type { Decide } from "../core/changes.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { ActionStatus, Decision } from "../core/action.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";

/** A held request, as it was shown. */
export interface ShownRequest {
  readonly id: string;
  readonly run: number;
  readonly digest: string;
}

export type ManyDecided =
  | { readonly id: string; readonly status: ActionStatus }
  | { readonly id: string; readonly error: { readonly code: ErrorCode; readonly message: string } };

/** Decides on several held requests at once: exactly on those that were shown, each by itself. */
export type DecideMany = (
  caller: Caller,
  decision: { readonly decision: Decision; readonly reason: string | null },
  requests: readonly ShownRequest[],
) => Promise<readonly ManyDecided[]>;

export function createDecideMany(decisions: Readonly<Record<"approve" | "cancel", Decide>>): DecideMany {
  return async (caller, { decision, reason }, requests) => {
    authorize(caller, "approve");
    const decide = decisions[decision === "approve" ? "approve" : "cancel"];
    const one = async ({ id, run, digest }: ShownRequest): Promise<ManyDecided> => {
      try {
        return { id, status: (await decide(caller, id, reason, { run, isHeld: true, digest })).status };
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        return { id, error: { code: error.code, message: error.message } };
      }
    };
    // Concurrently, so that they share commits.
    return Promise.all(requests.map(one));
  };
}
