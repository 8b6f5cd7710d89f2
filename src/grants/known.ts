import type { AccountStore } from "../core/account-store.ts";
import { AccountCache } from "../core/account-settings.ts";
import type { ActionRequest } from "../core/action.ts";
import { auditOf } from "../core/audit.ts";
import type { Clock } from "../core/clock.ts";
import { type Grant, type GrantStore, type FindGrant, type Granted, isInForce } from "../core/grant.ts";
import { hasEnded } from "../core/makers.ts";
import { type Caller, mayDo } from "../core/roles.ts";
import type { TeamStore } from "../core/team-store.ts";
import { fieldOf, likenessOf, numberOf } from "./likeness.ts";

interface KnownGrantDeps {
  readonly grants: GrantStore;
  readonly accounts: Pick<AccountStore, "findKey">;
  readonly team: Pick<TeamStore, "member">;
  readonly clock: Pick<Clock, "now">;
  /** A keyed digest. */
  readonly hashOf: (text: string) => string;
}

/** The grants of all accounts that may be in force: the store counts their uses. */
export class KnownGrants extends AccountCache<Grant, ReadonlyMap<string, readonly Grant[]>> implements FindGrant {
  readonly #deps: KnownGrantDeps;

  constructor(deps: KnownGrantDeps) {
    const { grants, clock } = deps;
    const store = { version: () => grants.version(), list: (id: string | null) => grants.list(id, clock.now()) };
    super(store, (rows) => Map.groupBy(rows, ({ keyId }) => keyId));
    this.#deps = deps;
  }

  /** See `FindGrant`. Whoever made it must still be allowed to approve. */
  async find(caller: Caller, request: ActionRequest, over: ReadonlySet<string>): Promise<Granted | null> {
    const { accountId, keyId } = caller;
    const own = keyId === null ? undefined : this.viewOf(accountId)?.get(keyId);
    if (own === undefined) return null;
    const now = this.#deps.clock.now();
    const likenesses = new Map<string, string | null>();
    for (const grant of own) {
      if (over.has(grant.id) || !isInForce(grant, now)) continue;
      const { vary } = grant;
      const name = JSON.stringify(vary);
      const likeness = likenesses.get(name) ?? digestOf(likenessOf(request, vary), this.#deps.hashOf);
      likenesses.set(name, likeness);
      if (likeness !== grant.likeness || !isWithin(grant, request) || !(await this.#isByApprover(grant, now))) continue;
      const detail = { grant: grant.id, calls: grant.calls, method: request.method, host: request.host };
      return {
        grant,
        use: { id: grant.id, audit: auditOf(caller, { kind: "grant_used", subject: grant.id, detail }, now) },
      };
    }
    return null;
  }

  async #isByApprover({ accountId, createdBy, createdById }: Grant, now: Date): Promise<boolean> {
    if (createdBy.startsWith("user:")) {
      const member = await this.#deps.team.member(accountId, createdById);
      return member !== null && mayDo(member.role, "approve");
    }
    const key = await this.#deps.accounts.findKey(accountId, createdById);
    return key !== null && !hasEnded(key, now) && mayDo(key.role, "approve");
  }
}

/** Whether each number that may differ is one, and no more than its most. */
function isWithin({ vary, max }: Grant, request: ActionRequest): boolean {
  return vary.every((path) => {
    const most = max[path];
    if (most === undefined) return true;
    const number = numberOf(fieldOf(request, path));
    return number !== null && number <= most;
  });
}

export function digestOf(likeness: string | null, hashOf: (text: string) => string): string | null {
  return likeness === null ? null : hashOf(likeness);
}
