import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, operation, optionalBody, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { accountIdSchema } from "./account.ts";
import type { SignUpsClosedBy } from "../config/values.ts";
import { auditEntry } from "../core/audit.ts";
import { authorize, type Caller, type Hold } from "../core/roles.ts";
import { DomainError, notFound } from "../core/domain-error.ts";
import { ACCOUNTS_LISTED_MAX } from "../core/limits.ts";
import type { AccountStore, HoldStop, ListedAccount } from "../core/account-store.ts";
import type { ActivePauses } from "../pauses/pauses.ts";

/** Decides whether anybody may sign up, and stops accounts that did once sign-ups are closed. */
export type SignUpGate = ReturnType<typeof createSignUpGate>;

/** `paused`: the cached pauses; a stopped account has one of the kind `sign_up`. */
export function createSignUpGate(
  { store: { accounts }, config: { signUps }, clock, log }: AppContext,
  paused: Pick<ActivePauses, "reload" | "refresh">,
) {
  /** Why sign-ups are closed; null: they are open. */
  const closedBy = async (): Promise<SignUpsClosedBy | null> => {
    if (signUps === "open") return null;
    if (signUps === "until_hold") return (await accounts.hasHold()) ? "hold" : null;
    return signUps.closedBy;
  };
  /** Whether the caller is of the first account, which is the operator's. */
  const isOperator = async ({ accountId }: Caller) => (await accounts.first())?.id === accountId;
  /** Throws `forbidden` unless the caller is an owner of the first account. Call it before looking anything up. */
  const requireOperator = async (caller: Caller) => {
    authorize(caller, "manage");
    if (await isOperator(caller)) return;
    throw new DomainError("forbidden", "Only owners of the first account of this service may do this.");
  };

  return {
    signUps,
    closedBy,
    isOperator,
    requireOperator,

    /** Throws `forbidden` if sign-ups are closed. Call it before checking anything else. */
    async requireOpen(): Promise<void> {
      const reason = await closedBy();
      if (reason !== null) throw new DomainError("forbidden", signUpsClosedMessage(reason));
    },

    /** What to write with a new key of this hold, if the key closes sign-ups; else null. */
    async stopFor(caller: Caller, hold: Hold, keyId: string): Promise<HoldStop | null> {
      if (signUps !== "until_hold" || hold === "none") return null;
      if (!(await isOperator(caller)) || (await accounts.hasHold())) return null;
      const at = clock.now();
      const audit = auditEntry(caller, { kind: "signups_closed", subject: keyId, detail: { by: "hold" } }, at);
      return { at, reason: STOPPED_REASON, audit };
    },

    /** At a start: stops the accounts that signed up, if sign-ups are closed now. Returns a notice for the operator. */
    async enforce(): Promise<string> {
      if (signUps === "open") return "Anyone who reaches this service may sign up: SIGNUPS is open.";
      const reason = await closedBy();
      if (reason === null) {
        return "Anyone on this machine may sign up, until a key of the first account has a hold, or APPROVERS or AGENT_APPROVAL=off is set.";
      }
      await accounts.stopOthers({ at: clock.now(), reason: STOPPED_REASON });
      return closedNotice(accounts, reason);
    },

    /** Applies the stop in this process and logs it. Call it after a write with `stopFor`. */
    async applyStop(): Promise<void> {
      await paused.reload();
      log.warn("signups.closed", { message: await closedNotice(accounts, "hold") });
    },

    /** The accounts of the service, stopped ones first; for owners of the first account. */
    async list(caller: Caller): Promise<readonly ListedAccount[]> {
      await requireOperator(caller);
      return accounts.list(ACCOUNTS_LISTED_MAX);
    },

    /** Allows a stopped account; for owners of the first account. Idempotent. Throws `not_found`. */
    async allow(caller: Caller, id: string): Promise<void> {
      await requireOperator(caller);
      const at = clock.now();
      const audit = auditEntry(caller, { kind: "account_allowed", subject: id }, at);
      if (!(await accounts.allow(id, { at, by: caller.actor, audit }))) {
        throw notFound("account");
      }
      await paused.refresh(id);
    },
  };
}

const STOPPED_REASON =
  "Signed up before sign-ups closed. An owner of the first account of this service has to allow it.";

const WHY: Readonly<Record<SignUpsClosedBy, string>> = {
  SIGNUPS: "the setting SIGNUPS says so",
  HOST: "this service can be reached from other machines",
  APPROVERS: "APPROVERS is set, and a new account would send without their approval",
  AGENT_APPROVAL: "AGENT_APPROVAL is off, and a new account would approve for itself",
  hold: "a key of the first account has a hold, and a new account would send without approval",
};

export function signUpsClosedMessage(closedBy: SignUpsClosedBy): string {
  return `Sign-ups are closed: ${WHY[closedBy]}. The operator of this service can open them with SIGNUPS=open.`;
}

/** The notice that sign-ups are closed, with the number of accounts that are stopped by it. */
async function closedNotice(accounts: Pick<AccountStore, "list">, closedBy: SignUpsClosedBy): Promise<string> {
  const message = signUpsClosedMessage(closedBy);
  const count = (await accounts.list(ACCOUNTS_LISTED_MAX)).filter(({ isStopped }) => isStopped).length;
  if (count === 0) return message;
  const are =
    count === 1 ? "1 account that was signed up before is" : `${count} accounts that were signed up before are`;
  return `${message} ${are} stopped. \`outgate accounts\` lists them, \`outgate accounts allow <id>\` lets one go on.`;
}

const ListedAccountJson = t.answerObject("ListedAccount", "An account of the service.", {
  id: accountIdSchema,
  email: t.nullable(t.plainText("Address of its first person; null: none.", "ann@example.com")),
  created_at: t.dateTime("When it was created."),
  first: t.yesNo("Whether it is the account of the first start.", false),
  stopped: t.yesNo("Its keys are refused and none of its actions is sent until it is allowed.", true),
  allowed_at: t.nullable(t.dateTime("When it was allowed; null: not necessary, or not yet.")),
});

export const AccountListJson = t.answerObject("AccountList", "The accounts of the service.", {
  data: Type.Array(ListedAccountJson, {
    description: `The accounts, stopped ones first, then the newest; at most ${ACCOUNTS_LISTED_MAX}.`,
  }),
});

export const AccountParams = pathParams(Type.Object({ id: accountIdSchema }), "There is no such account.");

export function accountsRoutes({ signUpGate }: { readonly signUpGate: SignUpGate }) {
  const requires = (caller: Caller) => signUpGate.requireOperator(caller);
  return createApiRoutes()
    .get(
      "/v1/accounts",
      async ({ caller }) => {
        const all = await signUpGate.list(caller);
        const data = all.map((row) => ({ ...row, first: row.isFirst, stopped: row.isStopped }));
        return jsonResponse(toJson(AccountListJson, { data }));
      },
      operation({
        operationId: "listAccounts",
        permission: "manage",
        requires,
        summary: "List the accounts of the service, for owners of the first one",
        description: "Lists the accounts of the service, stopped ones first.",
        notes: [
          "An account that signed up before sign-ups closed is stopped until it is allowed.",
          "Keys of other accounts than the first get 403.",
        ],
        answers: { 200: { description: "The accounts.", schema: AccountListJson } },
      }),
    )
    .post(
      "/v1/accounts/:id/allow",
      ({ caller, params }) => noContent(signUpGate.allow(caller, params.id)),
      operation({
        operationId: "allowAccount",
        permission: "manage",
        requires,
        summary: "Allow an account that signed up before sign-ups closed",
        description: "Lets a stopped account work again, for owners of the first account.",
        notes: [
          "Its keys work again, and its waiting actions are sent at once.",
          "Allowing an allowed account returns 204 again.",
        ],
        params: AccountParams,
        body: optionalBody(t.NoBody),
        answers: { 204: { description: "The account is allowed.", schema: null } },
      }),
    );
}
