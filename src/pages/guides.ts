import approvals from "../../docs/approvals.md" with { type: "text" };
import cli from "../../docs/cli.md" with { type: "text" };
import concepts from "../../docs/concepts.md" with { type: "text" };
import delivery from "../../docs/delivery.md" with { type: "text" };
import events from "../../docs/events.md" with { type: "text" };
import operations from "../../docs/operations.md" with { type: "text" };
import pages from "../../docs/pages.md" with { type: "text" };
import recipes from "../../docs/recipes.md" with { type: "text" };
import security from "../../docs/security.md" with { type: "text" };
import start from "../../docs/start.md" with { type: "text" };
import verify from "../../docs/verify.md" with { type: "text" };
import mcp from "../../mcp/README.md" with { type: "text" };
import type { Guide } from "./docs.tsx";

/** The guides at /docs: Markdown files of the repository, in reading order. */
export const GUIDES: readonly Guide[] = [
  {
    name: "start",
    file: "start.md",
    title: "Quick start",
    about: "A first action, approval, idempotency.",
    text: start,
  },
  {
    name: "concepts",
    file: "concepts.md",
    title: "Concepts",
    about: "Every term in a line or two.",
    text: concepts,
  },
  {
    name: "recipes",
    file: "recipes.md",
    title: "Recipes",
    about: "Stripe, GitHub, Slack, an internal API.",
    text: recipes,
  },
  {
    name: "mcp",
    file: "mcp/README.md",
    title: "Agents over MCP",
    about: "How to connect agents; the tools.",
    text: mcp,
  },
  {
    name: "approvals",
    file: "approvals.md",
    title: "Approvals",
    about: "Who decides, and how; receipts.",
    text: approvals,
  },
  {
    name: "pages",
    file: "pages.md",
    title: "The pages",
    about: "What each page is for; keyboard shortcuts.",
    text: pages,
  },
  { name: "delivery", file: "delivery.md", title: "Delivery", about: "Attempts, retries, callbacks.", text: delivery },
  { name: "verify", file: "verify.md", title: "Verify signatures", about: "In six languages; rotation.", text: verify },
  { name: "events", file: "events.md", title: "Events", about: "The stream of every change.", text: events },
  { name: "cli", file: "cli.md", title: "Command line", about: "The outgate command.", text: cli },
  {
    name: "operations",
    file: "operations.md",
    title: "Operations",
    about: "Files, backup, mail, metrics.",
    text: operations,
  },
  {
    name: "security",
    file: "security.md",
    title: "Security",
    about: "Guarantees, and their limits.",
    text: security,
  },
];
