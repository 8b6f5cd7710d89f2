import { auditOf } from "../audit/audit.ts";
import { authorize, type Caller, type Hold } from "./roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { ACCOUNTS_LISTED_MAX } from "../config/limits.ts";
import type { AccountStore, HoldStop, ListedAccount } from "../../db/account-store.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";

interface SignUpGateDeps {
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

/** Why nobody may sign up: a setting, or a key of the first account that has a hold. */
export type SignUpsClosedBy = "SIGNUPS" | "HOST" | "APPROVERS" | "AGENT_APPROVAL" | "hold";

/**
 * Who may sign up, as the settings say it. `until_hold`: whoever reaches the service, until a key of the first account has a
 * hold. A new account has an owner key and sends without approval: it is no way round what the first account asks for.
 */
export type SignUps = "open" | "until_hold" | { readonly closedBy: SignUpsClosedBy };

const WHY: Readonly<Record<SignUpsClosedBy, string>> = {
  SIGNUPS: "the setting SIGNUPS says so",
  HOST: "this service can be reached from other machines",
  APPROVERS: "APPROVERS is set, and a new account would send without their approval",
  AGENT_APPROVAL: "AGENT_APPROVAL is off, and a new account would approve for itself",
  hold: "a key of the first account has its calls approved, and a new account would send without approval",
};

/** Why nobody may sign up, and what to do about it. */
export function signUpsClosedWords(closedBy: SignUpsClosedBy): string {
  return `Sign-ups are closed: ${WHY[closedBy]}. Whoever runs this service opens them with SIGNUPS=open.`;
}

/** What stands with everything of an account that is stopped. */
const STOPPED_REASON =
  "Signed up before sign-ups closed. An owner of the first account of this service has to allow it.";

/** What the log tells of accounts that are stopped. */
function stoppedWords(count: number): string {
  const are =
    count === 1 ? "1 account that was signed up before is" : `${count} accounts that were signed up before are`;
  return `${are} stopped. \`outgate accounts\` lists them, \`outgate accounts allow <id>\` lets one go on.`;
}
