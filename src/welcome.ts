import type { FirstKeys } from "./accounts/bootstrap.ts";
import type { Config } from "./config.ts";

/** What the very first start prints: the keys, for the only time, and a line to paste. */
export function welcome({ baseUrl }: Pick<Config, "baseUrl">, { ownerKey, agentKey }: FirstKeys): string {
  const owner = ownerKey ?? "(the one in BOOTSTRAP_API_KEY)";
  return `
Outgate listens on ${baseUrl}. These keys are shown once:

  owner key   ${owner}   for you: everything, approvals included
  agent key   ${agentKey}   for your agent: creates, reads, cancels and retries; never approves

Send a first action:

  curl -s ${baseUrl}/v1/actions \\
    -H 'Authorization: Bearer ${agentKey}' -H 'Content-Type: application/json' \\
    -d '{"url":"${baseUrl}/health","method":"GET","sync":true}'

`;
}
