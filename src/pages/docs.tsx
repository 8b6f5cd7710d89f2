/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import { Marked, Renderer, type Tokens } from "marked";
import { Layout, render, renderPart } from "./layout.tsx";
import type { PageUser } from "./text.ts";
import { type ApiOperation, openApiJson } from "../api/openapi.ts";
import { rolesThatMay } from "../accounts/roles.ts";
import { ApiReference, type OpenApiDocument } from "./api-reference.tsx";
import { ERROR_MEANING, HTTP_STATUS } from "../api/errors.ts";
import { ERROR_CODES, type ErrorCode } from "../api/domain-error.ts";
import approvals from "../../docs/approvals.md" with { type: "text" };
import cli from "../../docs/cli.md" with { type: "text" };
import client from "../../docs/client.md" with { type: "text" };
import concepts from "../../docs/concepts.md" with { type: "text" };
import delivery from "../../docs/delivery.md" with { type: "text" };
import deploy from "../../docs/deploy.md" with { type: "text" };
import events from "../../docs/events.md" with { type: "text" };
import extensions from "../../docs/extensions.md" with { type: "text" };
import operating from "../../docs/operations.md" with { type: "text" };
import pages from "../../docs/pages.md" with { type: "text" };
import people from "../../docs/people.md" with { type: "text" };
import performance from "../../docs/performance.md" with { type: "text" };
import recipes from "../../docs/recipes.md" with { type: "text" };
import find from "../../docs/find.md" with { type: "text" };
import scale from "../../docs/scale.md" with { type: "text" };
import security from "../../docs/security.md" with { type: "text" };
import start from "../../docs/start.md" with { type: "text" };
import verify from "../../docs/verify.md" with { type: "text" };
import mcp from "../../mcp/README.md" with { type: "text" };

/** A Markdown document for users. */
export interface Guide {
  /** Its page is /docs/<name>. */
  readonly name: string;
  readonly title: string;
  /** What it is about, in a few words. */
  readonly about: string;
  /** Markdown. */
  readonly text: string;
}

/** The guides at /docs: Markdown files of the repository, in reading order. */
export const GUIDES: readonly Guide[] = [
  { name: "start", title: "Quick start", about: "A first action, approval, idempotency.", text: start },
  { name: "concepts", title: "Concepts", about: "Every term in a line or two.", text: concepts },
  { name: "recipes", title: "Recipes", about: "Stripe, GitHub, Slack, an internal API.", text: recipes },
  { name: "mcp", title: "Agents over MCP", about: "How to connect agents; the tools.", text: mcp },
  { name: "approvals", title: "Approvals", about: "Who decides, and how; receipts.", text: approvals },
  { name: "pages", title: "The pages", about: "What each page is for; keyboard shortcuts.", text: pages },
  { name: "find", title: "Find", about: "Search, counts, export, bulk retry and cancel.", text: find },
  { name: "people", title: "People", about: "Roles, invitations, log-in by OpenID Connect.", text: people },
  { name: "delivery", title: "Delivery", about: "Attempts, retries, callbacks.", text: delivery },
  { name: "verify", title: "Verify signatures", about: "In six languages; rotation.", text: verify },
  { name: "events", title: "Events", about: "The stream of every change.", text: events },
  { name: "client", title: "TypeScript client", about: "Create, wait, follow, verify; Python.", text: client },
  {
    name: "extensions",
    title: "What the API adds",
    about: "Bodies, times, search, people, channels.",
    text: extensions,
  },
  { name: "cli", title: "Command line", about: "The outgate command.", text: cli },
  { name: "operations", title: "Operations", about: "Files, backup, mail, metrics.", text: operating },
  { name: "deploy", title: "Deploy", about: "systemd, Docker, PostgreSQL and several nodes.", text: deploy },
  { name: "performance", title: "Performance", about: "What to expect; what to tune.", text: performance },
  { name: "scale", title: "Scale", about: "What an action costs; how far it goes.", text: scale },
  { name: "security", title: "Security", about: "Guarantees, and their limits.", text: security },
];

/** A page of the documentation. */
export interface DocsChapter extends Pick<Guide, "name" | "title"> {
  /** Trusted HTML. */
  readonly html: string;
}

interface DocsPageProps {
  readonly chapter: DocsChapter;
  readonly chapters: readonly DocsChapter[];
  /** Null if the reader is not logged in. */
  readonly user: PageUser | null;
  readonly version: string;
}

/** One chapter, with the way to the others. */
export function docsPage({ chapter, chapters, user, version }: DocsPageProps): string {
  return render(
    <Layout title={chapter.title} nav="Docs" user={user} width="wide">
      <div class="docs">
        <nav class="docs-nav" aria-label="Documentation">
          <ul>
            {chapters.map(({ name, title }) => (
              <li>
                <a href={docsPath(name)} aria-current={name === chapter.name ? "page" : undefined}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <article class="prose">{raw(chapter.html)}</article>
      </div>
      <p class="foot">
        Outgate {version} · <a href="/openapi.json">openapi.json</a> · <a href="/llms.txt">llms.txt</a>
        {user === null ? " · " : null}
        {user === null ? <a href="/login">Log in</a> : null}
      </p>
    </Layout>,
  );
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

/** All chapters in order: the guides, and after the first one the generated chapters. */
export function chaptersOf(
  guides: readonly Guide[],
  operations: readonly ApiOperation[],
  baseUrl: string,
): readonly DocsChapter[] {
  // Safe: `openApiJson` prints it, and a test renders all of it.
  const document = JSON.parse(openApiJson(operations, baseUrl)) as OpenApiDocument;
  const rolesOf = (operationId: string): readonly string[] => {
    const permission = operations.find((one) => one.operationId === operationId)?.permission ?? null;
    return permission === null ? [] : rolesThatMay(permission);
  };
  const [first, ...others] = guides.map(({ name, title, text }) => ({
    name,
    title,
    html: guideHtml(guideText({ text }, baseUrl), guides),
  }));
  return [
    ...(first === undefined ? [] : [first]),
    {
      name: "api",
      title: "API reference",
      html: renderPart(<ApiReference document={document} rolesOf={rolesOf} />),
    },
    { name: "errors", title: "Errors", html: renderPart(<ErrorsGuide />) },
    ...others,
  ];
}

/** The address of the service in the examples of the documents. */
const WRITTEN_BASE_URL = "http://127.0.0.1:3000";

/** The document with the service's own address in its examples. */
export function guideText({ text }: Pick<Guide, "text">, baseUrl: string): string {
  return text.replaceAll(WRITTEN_BASE_URL, () => baseUrl);
}

/**
 * A document as HTML. HTML in it is escaped. Links to other documents lead to their pages; links to other files of the
 * repository become plain text, and so do images.
 */
function guideHtml(markdown: string, guides: readonly Guide[]): string {
  // A bare address in a sentence is not a link.
  const marked = new Marked({ tokenizer: { url: () => undefined } });
  marked.setOptions({ renderer: new GuideRenderer(guides) });
  return marked.parse(markdown, { async: false });
}

class GuideRenderer extends Renderer {
  readonly #guides: readonly Guide[];
  /** How many headings have each ID. */
  readonly #ids = new Map<string, number>();

  constructor(guides: readonly Guide[]) {
    super();
    this.#guides = guides;
  }

  override heading({ depth, tokens, text: written }: Tokens.Heading): string {
    const id = written
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    const count = this.#ids.get(id) ?? 0;
    this.#ids.set(id, count + 1);
    const text = this.parser.parseInline(tokens);
    return `<h${depth} id="${count === 0 ? id : `${id}-${count}`}">${text}</h${depth}>\n`;
  }

  override code({ text, lang = "" }: Tokens.Code): string {
    const language = lang === "" ? "" : ` class="language-${Bun.escapeHTML(lang)}"`;
    return `<pre class="code"><code${language}>${Bun.escapeHTML(text)}\n</code></pre>\n`;
  }

  /** A table that is wider than the screen scrolls, and can be focused by keyboard (WCAG 2.1.1). */
  override table(token: Tokens.Table): string {
    return `<div class="table" role="group" aria-label="Table" tabindex="0">${super.table(token)}</div>\n`;
  }

  override tablecell({ header, tokens }: Tokens.TableCell): string {
    const text = this.parser.parseInline(tokens);
    return header ? `<th scope="col">${text}</th>\n` : `<td>${text}</td>\n`;
  }

  override link({ href, tokens }: Tokens.Link): string {
    const text = this.parser.parseInline(tokens);
    const path = pathOf(href, this.#guides);
    return path === null ? text : `<a href="${Bun.escapeHTML(path)}">${text}</a>`;
  }

  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return Bun.escapeHTML(text);
  }

  override image({ text }: Tokens.Image): string {
    return Bun.escapeHTML(text);
  }
}

/** The path of a link on our pages; null if the target is not served. */
function pathOf(href: string, guides: readonly Guide[]): string | null {
  if (/^(https:\/\/|\/|#)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const found = guides.find(({ name }) => path === fileOf(name) || path.endsWith(`/${fileOf(name)}`));
  if (found === undefined) return null;
  return docsPath(found.name) + (anchor === undefined ? "" : `#${anchor}`);
}

/** The path by which other documents link to a guide. */
function fileOf(name: string): string {
  return name === "mcp" ? "mcp/README.md" : `${name}.md`;
}

export function docsPath(name: string): string {
  return name === "start" ? "/docs" : `/docs/${name}`;
}

/** What to do about each error. */
const REMEDIES: Readonly<Record<ErrorCode, string>> = {
  missing_body: "Send a JSON object as the body.",
  validation_error: "Fix every field listed in details.",
  missing_field: "Set url to the address to call.",
  invalid_request: "Send JSON in UTF-8 with at most 64 levels and 10,000 members. If details names reason, add one.",
  invalid_query: "Fix the parameters listed in details. Use a cursor only with the filters it was returned for.",
  invalid_content_type: "Send Content-Type: application/json, and no Content-Encoding.",
  invalid_url:
    "Send an http or https URL with a public host. To call a private host, add it to ALLOWED_PRIVATE_TARGETS on the server.",
  invalid_sync: "Omit sync, and use GET /v1/actions/{id}?wait= or a callback instead.",
  unauthorized: "Send Authorization: Bearer with a key that is not revoked. Owners create keys at /keys.",
  invalid_credentials: "Check both. If the password is lost, the server’s operator can create a reset link.",
  forbidden: "Use a key with the required role or scope. The message says which, or when you can request it again.",
  not_found: "Check the ID, and that the key belongs to the same account.",
  method_not_allowed: "Use one of the methods in the Allow header.",
  not_cancellable: "Read the action: it is being sent, has ended, or is in another run.",
  not_approvable: "Read the action: it was already decided, never needed approval, or is in another run.",
  not_retryable:
    "Retry only failed or cancelled actions, while no other action uses the same dedupe value. After a rejection, the message says when you can retry.",
  too_many_jobs: "Wait for a bulk job to end, or stop one.",
  too_many_held: "Wait until some held actions are approved or rejected, or cancel those you no longer need.",
  email_taken: "Log in with it, or sign up with another address.",
  too_many_keys: "Revoke a key that you no longer use. GET /v1/keys shows when each key was last used.",
  last_owner: "Make somebody else an owner first.",
  payload_too_large: "Send at most 1 MB.",
  rate_limited: "Wait for the number of seconds in Retry-After, then send requests more slowly.",
  internal_error:
    "Try again with the same Idempotency-Key. If the error persists, report the request_id to the server’s operator.",
  unavailable: "Try again after Retry-After, with the same Idempotency-Key. The action is never stored twice.",
};

const EXAMPLE = JSON.stringify(
  {
    error: {
      code: "validation_error",
      message: "The request has fields that are not valid.",
      request_id: "req_01kjwa5v00e7v8c9x2m4n6p8qr",
      details: [{ field: "retries", message: "Must be an integer.", code: "invalid" }],
    },
  },
  null,
  2,
);

/** Every error of the API: what it means, and what to do. */
function ErrorsGuide() {
  return (
    <>
      <h1>Errors</h1>
      <p>
        Every error has the same body, on every path. <code>code</code> is for programs and does not change;{" "}
        <code>message</code> is for people and can change. <code>request_id</code> identifies the request in the
        server’s log. Every response also has it in the <code>X-Request-Id</code> header.
      </p>
      <pre class="code">{EXAMPLE}</pre>
      <dl class="codes">
        {ERROR_CODES.map((code) => (
          <div id={code}>
            <dt>
              <code>{code}</code> <span class="quiet">{HTTP_STATUS[code]}</span>
            </dt>
            <dd>
              {ERROR_MEANING[code]} <span class="quiet">{REMEDIES[code]}</span>
            </dd>
          </div>
        ))}
      </dl>
      <p>
        Repeating a request doesn’t help after 400, 401, 403, 404, 405, 409 or 413. After 429, 500 and 503, try again
        later. A failed action is not an API error: it is returned with status 200, and its <code>error</code> field
        says why it failed.
      </p>
    </>
  );
}
