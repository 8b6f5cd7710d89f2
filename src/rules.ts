import type { Config } from "./config.ts";
import type { Caller } from "./domain/caller.ts";
import { describePolicy, type TargetPolicy } from "./outbound/policy.ts";
import type { AccountStore } from "./ports/accounts.ts";
import type { Rules } from "./web/rules.tsx";

export interface RulesDeps {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly accounts: Pick<AccountStore, "first">;
}

/**
 * What is in force, for a caller. The first account is the operator's and reads all of it; of another's, who may be a
 * stranger that signed up, inside names and addresses are only counted.
 */
export function createRulesFor({ config, policy, accounts }: RulesDeps): (caller: Caller) => Promise<Rules> {
  return async ({ accountId }) => {
    const isOperators = (await accounts.first())?.id === accountId;
    const count = config.approvers.length;
    return {
      rateLimitPerSecond: config.rateLimitPerSecond ?? 0,
      attemptTimeoutMs: config.attemptTimeoutMs,
      retryBaseMs: config.retryBaseMs,
      retryCapMs: config.retryCapMs,
      approvalTtlHours: config.approvalTtlHours,
      approvalLinks: config.approvalLinks,
      agentApproval: config.agentApproval,
      retentionDays: config.retentionDays,
      sendsMail: config.mail !== null,
      targets: describePolicy(isOperators ? policy : { ...policy, listed: countedOnly(policy.listed) }),
      approvers: isOperators || count === 0 ? config.approvers : [`Those that the server lists (${count}).`],
    };
  };
}

function countedOnly({ length }: readonly string[]): readonly string[] {
  return length === 0 ? [] : [`${length} private ${length === 1 ? "target" : "targets"} that the server lists`];
}
