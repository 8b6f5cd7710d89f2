import type { Config } from "./config.ts";
import { parsePolicy, type TargetPolicy } from "./outbound/policy.ts";

/** Where calls may go by these settings. Throws a sentence for the operator that names what it can't read. */
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

/** The address and port listened on, by every name that leads there from this machine. */
function listeningOrigins({ host, port }: Config): readonly string[] {
  const hosts = ["127.0.0.1", "[::1]", "localhost", host.includes(":") ? `[${host}]` : host];
  return hosts.map((name) => `http://${name}:${port}`);
}
