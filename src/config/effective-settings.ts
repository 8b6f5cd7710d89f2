import type { Config } from "./config.ts";
import type { Caller } from "../accounts/roles.ts";
import { describePolicy, type TargetPolicy, parsePolicy } from "../outbound/policy.ts";
import type { AccountStore } from "../../db/account-store.ts";
import type { Rules } from "../pages/settings.tsx";

interface RulesDeps {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly accounts: Pick<AccountStore, "first">;
}

/**
 * The settings in force, as a caller may see them. The first account is the operator's and sees everything; for others, who
 * may be strangers, internal names and addresses are only counted.
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

/** The target policy of the settings. Throws an error for the operator that names invalid entries. */
export function policyOf(config: Config): TargetPolicy {
  const policy = parsePolicy({
    allowedPrivateTargets: config.allowedPrivateTargets,
    loopbackAllowed: config.isOnLoopback,
    ownOrigins: [config.baseUrl, ...listeningOrigins(config)],
  });
  if ("problems" in policy) {
    throw new Error(
      ["The settings can't be used:", ...policy.problems.map((problem) => `ALLOWED_PRIVATE_TARGETS: ${problem}`)].join(
        "\n- ",
      ),
    );
  }
  return policy;
}

/** The origins under which this machine reaches the service itself. */
function listeningOrigins({ host, port }: Config): readonly string[] {
  const hosts = ["127.0.0.1", "[::1]", "localhost", host.includes(":") ? `[${host}]` : host];
  return hosts.map((name) => `http://${name}:${port}`);
}
