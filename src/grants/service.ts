import type { AccountStore } from "../core/account-store.ts";
import type { Action } from "../core/action.ts";
import { auditOf } from "../core/audit.ts";
import { DomainError, invalidFields, type Issue, notFound, accountFull } from "../core/domain-error.ts";
import type { Grant, GrantStore, GrantTerms } from "../core/grant.ts";
import { GRANTS_MAX } from "../core/limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { digestOf, type KnownGrants } from "./known.ts";
import { fieldOf, likenessOf, numberOf } from "./likeness.ts";

interface GrantServiceDeps extends Pick<AppContext, "clock" | "ids"> {
  readonly grants: GrantStore;
  readonly known: Pick<KnownGrants, "refresh">;
  readonly accounts: Pick<AccountStore, "findKey">;
  readonly hashOf: (text: string) => string;
}

/** A grant with the name of its key. */
export interface NamedGrant extends Grant {
  readonly keyName: string;
}

/** Every use case of grants: whoever may approve makes them with an approval, sees and ends them. */
export type GrantService = ReturnType<typeof createGrantService>;

export function createGrantService({ grants, known, accounts, clock, ids, hashOf }: GrantServiceDeps) {
  const list = async (caller: Caller): Promise<readonly Grant[]> => {
    authorize(caller, "approve");
    return grants.list(caller.accountId, clock.now());
  };
  return {
    /** Those in force, newest first. */
    list,

    /** The same with the names of their keys, which approvers can't list. */
    async listNamed(caller: Caller): Promise<readonly NamedGrant[]> {
      const found = await list(caller);
      const keyIds = [...new Set(found.map(({ keyId }) => keyId))];
      const keys = await Promise.all(keyIds.map((id) => accounts.findKey(caller.accountId, id)));
      const names = new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key.name]])));
      return found.map((grant) => ({ ...grant, keyName: names.get(grant.keyId) ?? grant.keyId }));
    },

    /** Nothing passes by it after this resolves. Throws `not_found`. */
    async end(caller: Caller, id: string): Promise<void> {
      authorize(caller, "approve");
      const at = clock.now();
      const { accountId, actor: by } = caller;
      const audit = auditOf(caller, { kind: "grant_ended", subject: id }, at);
      if ((await grants.end(accountId, id, { at, by, audit })) === null) {
        throw notFound("grant in force");
      }
      await known.refresh(accountId);
    },

    /**
     * The grant that comes with the approval of an action, which stores it. Throws `forbidden` for whoever only passes on an answer, and
     * `validation_error` where the terms are not about the action, or it was held because its caller asked for it.
     */
    async make(caller: Caller, action: Action, terms: GrantTerms): Promise<Grant> {
      authorize(caller, "approve");
      const maker = caller.keyId ?? caller.personId;
      // Links and clients of agents carry an answer on; nobody there has signed in.
      if (maker === undefined || caller.via !== undefined) throw mayNotGrant();
      const { minutes, calls, vary = [], max = {} } = terms;
      const likeness = digestOf(likenessOf(action, vary), hashOf);
      const issues = issuesOf(action, terms);
      if (issues.length > 0) throw invalidFields(issues);
      if (likeness === null) throw invalidFields([NOT_COMPARABLE]);
      const now = clock.now();
      if ((await grants.list(action.accountId, now)).length >= GRANTS_MAX) {
        throw accountFull(GRANTS_MAX, "grants in force", "End one first.");
      }
      return {
        id: ids.grant(),
        accountId: action.accountId,
        keyId: action.keyId,
        actionId: action.id,
        likeness,
        vary,
        max,
        calls,
        used: 0,
        expiresAt: new Date(now.getTime() + minutes * 60_000),
        createdAt: now,
        createdBy: caller.actor,
        createdById: maker,
        endedAt: null,
        endedBy: null,
      };
    },

    /** Reads the grants of the account again, after one was stored. */
    stored: (accountId: string) => known.refresh(accountId),
  };
}

function issuesOf(action: Action, { vary = [], max = {} }: GrantTerms): readonly Issue[] {
  const { policy, keyId } = action;
  if (keyId === "")
    return [{ field: "grant", message: "A grant is for the calls of a key, and no key created this action." }];
  if (policy?.by !== "key" && policy?.by !== "rule") {
    const message = "Would change nothing: the requester itself asks for approval of these calls.";
    return [{ field: "grant", message }];
  }
  return [
    ...vary.flatMap((path, n) => {
      const text = fieldOf(action, path);
      const message =
        "The body of this action has no plain value there. Paths look like body.amount or body.items[0].id.";
      return text === null ? [{ field: `grant.vary.${n}`, message }] : [];
    }),
    ...Object.entries(max).flatMap(([path, most]): readonly Issue[] => {
      const field = `grant.max.${path}`;
      if (!vary.includes(path)) return [{ field, message: "Must be one of `vary`." }];
      const number = numberOf(fieldOf(action, path));
      if (number === null)
        return [{ field, message: "Is not a number from 0 with at most 3 decimals in this action." }];
      return number > most ? [{ field, message: `Must be at least ${number}, which this action has.` }] : [];
    }),
  ];
}

const NOT_COMPARABLE: Issue = {
  field: "grant.vary",
  message: "The body of this action can't be compared with others: it is no JSON, or too large.",
};

function mayNotGrant(): DomainError {
  return new DomainError(
    "forbidden",
    "Only people who are signed in, and approver and owner keys, can allow more calls like this.",
  );
}
