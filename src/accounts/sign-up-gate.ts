import { auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { ACCOUNTS_LISTED_MAX } from "../domain/limits.ts";
import type { Hold } from "../domain/roles.ts";
import {
  type SignUps,
  type SignUpsClosedBy,
  signUpsClosedWords,
  STOPPED_REASON,
  stoppedWords,
} from "../domain/sign-ups.ts";
import type { AccountStore, HoldStop, ListedAccount } from "../ports/accounts.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

export interface SignUpGateDeps {
  readonly accounts: Pick<AccountStore, "allow" | "first" | "hasHold" | "list" | "stopOthers">;
  /** What this process knows of pauses; an account that is stopped has one of the kind `sign_up`. */
  readonly paused: { readonly load: () => Promise<void>; readonly refresh: (accountId: string) => Promise<void> };
  readonly signUps: SignUps;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "warn">;
}

/** Whether strangers may sign up, and what becomes of those who did once they may not. */
export type SignUpGate = ReturnType<typeof createSignUpGate>;

export function createSignUpGate({ accounts, paused, signUps, clock, log }: SignUpGateDeps) {
  /** Null: anybody may sign up. */
  const closedBy = async (): Promise<SignUpsClosedBy | null> => {
    if (signUps === "open") return null;
    if (signUps === "until_hold") return (await accounts.hasHold()) ? "hold" : null;
    return signUps.closedBy;
  };
  const isOperators = async ({ accountId }: Caller) => (await accounts.first())?.id === accountId;
  const requireOperator = async (caller: Caller) => {
    authorize(caller, "manage");
    if (await isOperators(caller)) return;
    throw new DomainError("forbidden", "Only owners of the first account of this service may do this.");
  };

  /** What has to be written along with a key of this hold; null: it closes nothing. */
  const stopFor = async (caller: Caller, hold: Hold, keyId: string): Promise<HoldStop | null> => {
    if (signUps !== "until_hold" || hold === "none") return null;
    return (await isOperators(caller)) && !(await accounts.hasHold()) ? newStop(caller, keyId, clock.now()) : null;
  };

  return {
    signUps,
    closedBy,
    /** Whether a caller is of the account that the first start made. */
    isOperators,
    /** Throws `forbidden` for everybody but owners of the first account; asked before anything is looked at. */
    requireOperator,
    stopFor,

    /** Stops at a start who was signed up while that was allowed; a sentence for the operator about sign-ups as they are. */
    async enforce(): Promise<string> {
      if (signUps === "open") return "Anybody who reaches this service may sign up: SIGNUPS is open.";
      const why = await closedBy();
      if (why === null) {
        return "Anybody on this machine may sign up, until a key of the first account has a hold, or APPROVERS or AGENT_APPROVAL=off is set.";
      }
      await accounts.stopOthers({ at: clock.now(), reason: STOPPED_REASON });
      return closedWords(accounts, why);
    },

    /** After that was written: from now on the keys of those accounts are refused. */
    async closed(): Promise<void> {
      await paused.load();
      log.warn("signups.closed", { message: await closedWords(accounts, "hold") });
    },

    /** The accounts of the service, those that are stopped first; for owners of the first one. */
    async list(caller: Caller): Promise<readonly ListedAccount[]> {
      await requireOperator(caller);
      return accounts.list(ACCOUNTS_LISTED_MAX);
    },

    /** Lets an account go on; twice is the same as once. For owners of the first one. Throws `not_found`. */
    async allow(caller: Caller, id: string): Promise<void> {
      await requireOperator(caller);
      const at = clock.now();
      const audit = auditOf(caller, { kind: "account_allowed", subject: id }, at);
      if (!(await accounts.allow(id, { at, by: caller.actor, audit }))) {
        throw new DomainError("not_found", "There is no such account.");
      }
      await paused.refresh(id);
    },
  };
}

function newStop(caller: Caller, keyId: string, at: Date): HoldStop {
  const audit = auditOf(caller, { kind: "signups_closed", subject: keyId, detail: { by: "hold" } }, at);
  return { at, reason: STOPPED_REASON, audit };
}

async function closedWords(accounts: Pick<AccountStore, "list">, why: SignUpsClosedBy): Promise<string> {
  const stopped = (await accounts.list(ACCOUNTS_LISTED_MAX)).filter(({ isStopped }) => isStopped).length;
  return stopped === 0 ? signUpsClosedWords(why) : `${signUpsClosedWords(why)} ${stoppedWords(stopped)}`;
}
