import type { FirstKeys } from "./accounts/bootstrap.ts";
import type { Config } from "./config.ts";

/** Where somebody with this token comes in. */
export function welcomeUrl({ baseUrl }: Pick<Config, "baseUrl">, token: string): string {
  return `${baseUrl}/welcome/${token}`;
}

/** What the first start shows: the keys and a link, for the only time, and a line to paste. */
export function welcome(config: Pick<Config, "baseUrl">, { ownerKey, agentKey, welcomeToken }: FirstKeys): string {
  const { baseUrl } = config;
  const owner = ownerKey ?? "(the one in BOOTSTRAP_API_KEY)";
  return `
Outgate listens on ${baseUrl}. These keys are shown once:

  owner key   ${owner}   for you: everything, approvals included
  agent key   ${agentKey}   for your agent: creates, reads, cancels and retries; never approves by itself
${welcomeToken === null ? "" : LINK.replace("{url}", () => welcomeUrl(config, welcomeToken))}
Send a first action:

curl -s ${baseUrl}/v1/actions -H @- -H 'Content-Type: application/json' \\
  -d '{"url":"${baseUrl}/health","method":"GET","sync":true}' <<KEY
Authorization: Bearer ${agentKey}
KEY

Or let an agent send it: this adds Outgate to Claude Code, started with OUTGATE_API_KEY set to the agent key. mcp/README.md
tells how to add it to others:

  claude mcp add --transport http outgate ${baseUrl}/mcp --scope project --header 'Authorization: Bearer \${OUTGATE_API_KEY}'

`;
}

/**
 * The same where an agent has started the service, and keeps what it prints: no key and no link is among it, or the agent
 * would have its person's.
 */
export function firstStartNotice({ baseUrl }: Pick<Config, "baseUrl">): string {
  return `
Outgate listens on ${baseUrl} and serves the agent on standard input. To decide in a browser run \`outgate welcome-link\`
in the same folder; \`outgate new-owner-key\` makes a key for you. Neither is for the agent.

`;
}

const LINK = `
To decide in a browser, open this once and choose a password (it works for 7 days, and \`outgate welcome-link\` makes another):

  {url}
`;
