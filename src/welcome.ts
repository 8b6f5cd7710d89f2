import type { FirstKeys } from "./accounts/bootstrap.ts";
import type { Config } from "./config.ts";

/** Where somebody with this token comes in. */
export function welcomeUrl({ baseUrl }: Pick<Config, "baseUrl">, token: string): string {
  return `${baseUrl}/welcome/${token}`;
}

/** What the very first start prints: the keys and a link, for the only time, and a line to paste. */
export function welcome(config: Pick<Config, "baseUrl">, { ownerKey, agentKey, welcomeToken }: FirstKeys): string {
  const { baseUrl } = config;
  const owner = ownerKey ?? "(the one in BOOTSTRAP_API_KEY)";
  return `
Outgate listens on ${baseUrl}. These keys are shown once:

  owner key   ${owner}   for you: everything, approvals included
  agent key   ${agentKey}   for your agent: creates, reads, cancels and retries; never approves
${welcomeToken === null ? "" : LINK.replace("{url}", () => welcomeUrl(config, welcomeToken))}
Send a first action:

  curl -s ${baseUrl}/v1/actions \\
    -H 'Authorization: Bearer ${agentKey}' -H 'Content-Type: application/json' \\
    -d '{"url":"${baseUrl}/health","method":"GET","sync":true}'

`;
}

const LINK = `
To decide in a browser, open this once and choose a password (it works for 7 days, and \`outgate welcome-link\` makes another):

  {url}
`;
