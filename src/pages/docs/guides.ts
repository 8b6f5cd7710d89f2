import approvals from "../../../docs/approvals.md" with { type: "text" };
import cli from "../../../docs/cli.md" with { type: "text" };
import client from "../../../docs/client.md" with { type: "text" };
import concepts from "../../../docs/concepts.md" with { type: "text" };
import connect from "../../../docs/connect.md" with { type: "text" };
import delivery from "../../../docs/delivery.md" with { type: "text" };
import deploy from "../../../docs/deploy.md" with { type: "text" };
import events from "../../../docs/events.md" with { type: "text" };
import extensions from "../../../docs/extensions.md" with { type: "text" };
import operating from "../../../docs/operations.md" with { type: "text" };
import pages from "../../../docs/pages.md" with { type: "text" };
import people from "../../../docs/people.md" with { type: "text" };
import performance from "../../../docs/performance.md" with { type: "text" };
import recipes from "../../../docs/recipes.md" with { type: "text" };
import find from "../../../docs/find.md" with { type: "text" };
import credentials from "../../../docs/credentials.md" with { type: "text" };
import rules from "../../../docs/rules.md" with { type: "text" };
import scale from "../../../docs/scale.md" with { type: "text" };
import security from "../../../docs/security.md" with { type: "text" };
import start from "../../../docs/start.md" with { type: "text" };
import verify from "../../../docs/verify.md" with { type: "text" };
import mcp from "../../../mcp/README.md" with { type: "text" };

/** A Markdown document for users. */
export interface Guide {
  /** Its page is /docs/<name>. */
  readonly name: string;
  readonly title: string;
  /** The subject in a few words. */
  readonly about: string;
  readonly text: string;
}

/** A part of the documentation, as its navigation shows it. */
export interface GuideGroup {
  readonly title: string;
  readonly guides: readonly Guide[];
}

/** The guides at /docs: Markdown files of the repository, in reading order. */
export const GUIDE_GROUPS: readonly GuideGroup[] = [
  {
    title: "Get started",
    guides: [
      { name: "start", title: "Quick start", about: "A first action, approval, idempotency.", text: start },
      { name: "concepts", title: "Concepts", about: "Every term in a line or two.", text: concepts },
      { name: "recipes", title: "Recipes", about: "Stripe, GitHub, Slack, an internal API.", text: recipes },
    ],
  },
  {
    title: "Connect",
    guides: [
      { name: "mcp", title: "Agents over MCP", about: "How to connect agents; the tools.", text: mcp },
      { name: "connect", title: "Connect by login", about: "claude.ai, ChatGPT: OAuth for /mcp.", text: connect },
      { name: "client", title: "TypeScript client", about: "Create, wait, follow, verify; Python.", text: client },
      { name: "cli", title: "Command line", about: "The outgate command.", text: cli },
    ],
  },
  {
    title: "Approve and follow",
    guides: [
      { name: "approvals", title: "Approvals", about: "Who decides, and how; receipts.", text: approvals },
      { name: "rules", title: "Rules", about: "What is held, refused or allowed.", text: rules },
      {
        name: "credentials",
        title: "Credentials",
        about: "Secrets that agents use and never see.",
        text: credentials,
      },
      { name: "pages", title: "The pages", about: "What each page is for; keyboard shortcuts.", text: pages },
      { name: "find", title: "Find", about: "Search, counts, export, bulk retry and cancel.", text: find },
      { name: "people", title: "People", about: "Roles, invitations, login by OpenID Connect.", text: people },
    ],
  },
  {
    title: "Deliver",
    guides: [
      { name: "delivery", title: "Delivery", about: "Attempts, retries, callbacks.", text: delivery },
      { name: "verify", title: "Verify signatures", about: "In six languages; rotation.", text: verify },
      { name: "events", title: "Events", about: "The stream of every change.", text: events },
      {
        name: "extensions",
        title: "What the API adds",
        about: "Bodies, times, search, people, channels.",
        text: extensions,
      },
    ],
  },
  {
    title: "Operate",
    guides: [
      { name: "operations", title: "Operations", about: "Files, backup, mail, metrics.", text: operating },
      { name: "deploy", title: "Deploy", about: "systemd, Docker, PostgreSQL and several nodes.", text: deploy },
      { name: "performance", title: "Performance", about: "What to expect; what to tune.", text: performance },
      { name: "scale", title: "Scale", about: "What an action costs; how far it goes.", text: scale },
      { name: "security", title: "Security", about: "Guarantees, and their limits.", text: security },
    ],
  },
];

export const GUIDES: readonly Guide[] = GUIDE_GROUPS.flatMap(({ guides }) => guides);

/** The service's address in the documents' examples. */
const WRITTEN_BASE_URL = "http://127.0.0.1:3000";

/** The document with the service's own address in its examples. */
export function guideText({ text }: Pick<Guide, "text">, baseUrl: string): string {
  return text.replaceAll(WRITTEN_BASE_URL, () => baseUrl);
}

/** The path of a page of the documentation by its name. */
export function docsPath(name: string): string {
  return name === "start" ? "/docs" : `/docs/${name}`;
}

/** The documentation for models (llmstxt.org). */
export function llmsText(guides: readonly Guide[], baseUrl: string): string {
  const lines = guides.map(({ name, title, about }) => `- [${title}](${baseUrl}/docs/${name}.md): ${about}`);
  return `# Outgate

> An action delivery service for AI agents: it stores an HTTP call, holds it for approval if required, sends and signs it,
> retries it when it fails, and records the result.

Every path under /v1 needs \`Authorization: Bearer <API key>\`. Agents should use MCP at ${baseUrl}/mcp with the same key.

## Docs

${lines.join("\n")}
- [Errors](${baseUrl}/docs/errors): every code, and what to do.

## API

- [OpenAPI 3.1](${baseUrl}/openapi.json): every operation with its fields, answers and errors.
`;
}
