/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import { DOCS_STYLE } from "./assets.ts";
import { docsPath, type Guide } from "./guide.ts";
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

/** A page of the documentation: its name, and what stands on it. */
export interface DocsChapter {
  readonly name: string;
  readonly title: string;
  /** HTML of ours. */
  readonly html: string;
}

export interface DocsPageProps {
  readonly chapter: DocsChapter;
  readonly chapters: readonly Pick<DocsChapter, "name" | "title">[];
  /** Null: whoever reads is not logged in, and need not be. */
  readonly user: PageUser | null;
  readonly version: string;
}

/** One chapter, with the way to the others. */
export function docsPage({ chapter, chapters, user, version }: DocsPageProps): string {
  return render(
    <Layout title={chapter.title} place="Docs" user={user} width="wide" style={DOCS_STYLE}>
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
        {user === null ? (
          <>
            {" "}
            · <a href="/login">Log in</a>
          </>
        ) : null}
      </p>
    </Layout>,
  );
}

/** The documentation for models (llmstxt.org): what there is, and where it stands as plain text. */
export function llmsText(guides: readonly Guide[], baseUrl: string): string {
  const lines = guides.map(({ name, title, about }) => `- [${title}](${baseUrl}/docs/${name}.md): ${about}`);
  return `# Outgate

> The gate that everything an agent sends goes out through: it stores an HTTP call, holds it for a person where that is wanted,
> makes it, signs it, repeats it when it fails, and shows how it ended.

Every path under /v1 needs \`Authorization: Bearer <API key>\`. Agents best use MCP at ${baseUrl}/mcp with the same key.

## Docs

${lines.join("\n")}
- [Errors](${baseUrl}/docs/errors): every code, and what to do.

## API

- [OpenAPI 3.1](${baseUrl}/openapi.json): every operation with its fields, answers and errors.
`;
}
