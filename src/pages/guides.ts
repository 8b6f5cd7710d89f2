import approvals from "../../docs/approvals.md" with { type: "text" };
import cli from "../../docs/cli.md" with { type: "text" };
import delivery from "../../docs/delivery.md" with { type: "text" };
import events from "../../docs/events.md" with { type: "text" };
import operations from "../../docs/operations.md" with { type: "text" };
import pages from "../../docs/pages.md" with { type: "text" };
import security from "../../docs/security.md" with { type: "text" };
import start from "../../docs/start.md" with { type: "text" };
import verify from "../../docs/verify.md" with { type: "text" };
import mcp from "../../mcp/README.md" with { type: "text" };
import type { Guide } from "./docs.tsx";

/** What /docs holds beside the API itself: the very files of the repository, in the order in which they are read. */
export const GUIDES: readonly Guide[] = [
  {
    name: "start",
    file: "start.md",
    title: "Quick start",
    about: "A first action, approval, idempotency.",
    text: start,
  },
  { name: "mcp", file: "mcp/README.md", title: "Agents over MCP", about: "How agents add it; the tools.", text: mcp },
  {
    name: "approvals",
    file: "approvals.md",
    title: "Approvals",
    about: "The ways to decide; receipts.",
    text: approvals,
  },
  { name: "pages", file: "pages.md", title: "The pages", about: "What each page is for; keys.", text: pages },
  { name: "delivery", file: "delivery.md", title: "Delivery", about: "Attempts, retries, callbacks.", text: delivery },
  { name: "verify", file: "verify.md", title: "Verify signatures", about: "In six languages; rotation.", text: verify },
  { name: "events", file: "events.md", title: "Events", about: "The stream of every change.", text: events },
  { name: "cli", file: "cli.md", title: "Command line", about: "The outgate command.", text: cli },
  { name: "operations", file: "operations.md", title: "Running it", about: "Files, backup, keys.", text: operations },
  {
    name: "security",
    file: "security.md",
    title: "Security",
    about: "What is promised, and what not.",
    text: security,
  },
];
