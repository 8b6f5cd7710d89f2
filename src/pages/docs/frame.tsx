/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { DOCS_QUERY_CHARS_MAX } from "../../core/limits.ts";
import { Icon, Logo } from "../../ui/icons.tsx";
import { Head, render } from "../../ui/layout.tsx";
import { docsPath } from "./guides.ts";
import type { DocsPage, DocsSite } from "./site.tsx";
import type { DocsHit } from "./search.ts";

export const DOCS_SEARCH_PATH = "/docs/search";

interface DocsReader {
  /** The documentation is the same for everybody; only the way back to the console differs. */
  readonly isLoggedIn: boolean;
  readonly version: string;
}

interface DocsPageProps extends DocsReader {
  readonly page: DocsPage;
  readonly site: DocsSite;
}

export function docsPage({ page, site, ...reader }: DocsPageProps): string {
  return render(
    <DocsFrame title={page.title} current={page.name} site={site} {...reader}>
      <main id="main" class={page.isOperation ? "docs-main docs-full" : "docs-main"}>
        {page.headings.length < 2 ? null : <OnThisPage headings={page.headings} />}
        <article class="prose">{raw(page.html)}</article>
        <Neighbours page={page} site={site} />
        <DocsFoot {...reader} />
      </main>
    </DocsFrame>,
  );
}

interface DocsSearchPageProps extends DocsReader {
  readonly site: DocsSite;
  readonly query: string;
  readonly hits: readonly DocsHit[];
}

/** The page of results. Its list also appears below the field as people type. */
export function docsSearchPage({ site, query, hits, ...reader }: DocsSearchPageProps): string {
  return render(
    <DocsFrame
      title={query === "" ? "Search" : `Search: ${query}`}
      current={null}
      query={query}
      site={site}
      {...reader}
    >
      <main id="main" class="docs-main">
        <article class="prose">
          <h1>Search</h1>
          <SearchHits query={query} hits={hits} />
        </article>
        <DocsFoot {...reader} />
      </main>
    </DocsFrame>,
  );
}

function SearchHits({ query, hits }: Pick<DocsSearchPageProps, "query" | "hits">) {
  return (
    <div id="results">
      <p class="quiet small" role="status">
        {foundText(query, hits.length)}
      </p>
      <ul class="found">
        {hits.map(({ path, page, heading, snippet }) => (
          <li>
            <a href={path}>
              <b>{heading}</b>
              {page === heading ? null : <span class="quiet">{page}</span>}
              <span class="found-text">
                {snippet.map(({ text, isFound }) => (isFound ? <mark>{text}</mark> : text))}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

function foundText(query: string, count: number): string {
  if (query === "") return "Type a word: a term, a field of the API, an error code.";
  if (count === 0) return `No page has “${query}”. Try another word, or fewer.`;
  return `${count === 1 ? "1 result" : `${count} results`} for “${query}”`;
}

interface DocsFrameProps extends DocsReader {
  readonly title: string;
  /** The page marked in the navigation; null for none. */
  readonly current: string | null;
  readonly site: DocsSite;
  readonly query?: string;
  readonly children?: Child;
}

function DocsFrame({ title, current, site, query = "", isLoggedIn, children }: DocsFrameProps) {
  return (
    <html lang="en" class="docs">
      <Head title={`${title} · Outgate docs`} hasConsole />
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="docs-top on-screen">
          {/* A phone has no room for the list beside the text: the button opens it over the page, without script too. */}
          <button type="button" class="button-plain docs-menu" popovertarget="docs-nav">
            <Icon name="actions" />
            <span class="visually-hidden">Menu</span>
          </button>
          <a class="brand" href="/docs">
            <Logo />
            Outgate <span class="quiet">Docs</span>
          </a>
          <DocsSearchForm query={query} isOnResults={current === null} />
          <nav class="docs-links" aria-label="Service">
            <a href={docsPath("api")}>API</a>
            {isLoggedIn ? <a href="/approvals">Console</a> : <a href="/login">Log in</a>}
          </nav>
        </header>
        <div class="docs-columns">
          <nav id="docs-nav" class="docs-nav" aria-label="Documentation" popover="auto">
            <DocsNavigation current={current} site={site} />
          </nav>
          {children}
        </div>
      </body>
    </html>
  );
}

/** The search field. Without script, Enter opens the page of results. */
function DocsSearchForm({ query, isOnResults }: { readonly query: string; readonly isOnResults: boolean }) {
  const [target, swap] = isOnResults ? ["#results", "outerHTML"] : ["#docs-found", "innerHTML"];
  return (
    <form class="search docs-search" role="search" action={DOCS_SEARCH_PATH}>
      <Icon name="search" />
      <input
        id="search"
        name="q"
        type="search"
        value={query}
        maxlength={DOCS_QUERY_CHARS_MAX}
        placeholder="Search the docs"
        aria-label="Search the documentation"
        autocomplete="off"
        hx-get={DOCS_SEARCH_PATH}
        hx-trigger="input changed delay:120ms"
        hx-target={target}
        hx-select="#results"
        hx-swap={swap}
        hx-sync="this:replace"
      />
      <kbd aria-hidden="true">/</kbd>
      <div id="docs-found" class="docs-found" />
    </form>
  );
}

function DocsNavigation({ current, site }: Pick<DocsFrameProps, "current" | "site">) {
  const isApi = current !== null && (current === "errors" || current.startsWith("api"));
  const guides = site.groups.filter((group) => group !== site.api);
  // API pages list their own group first, so that the current page is in sight.
  const groups = isApi ? [site.api, ...site.operations, ...guides] : [...guides, site.api];
  return (
    <>
      {groups.map(({ title, links }) => (
        <>
          <h2>{title}</h2>
          <ul>
            {links.map(({ name, title: of }) => (
              <li>
                <a href={docsPath(name)} aria-current={name === current ? "page" : undefined}>
                  {of}
                </a>
              </li>
            ))}
          </ul>
        </>
      ))}
    </>
  );
}

function OnThisPage({ headings }: Pick<DocsPage, "headings">) {
  return (
    <nav class="docs-toc" aria-label="On this page">
      <h2>On this page</h2>
      <ul>
        {headings
          .filter(({ depth }) => depth <= 3)
          .map(({ id, text, depth }) => (
            <li class={depth === 3 ? "deeper" : undefined}>
              <a href={`#${id}`}>{text}</a>
            </li>
          ))}
      </ul>
    </nav>
  );
}

function Neighbours({ page, site }: Pick<DocsPageProps, "page" | "site">) {
  const all = [...site.groups, ...site.operations].flatMap(({ links }) => links);
  const at = all.findIndex(({ name }) => name === page.name);
  const neighbours = [
    { link: all[at - 1], word: "Previous", rel: "prev", look: "card" },
    { link: all[at + 1], word: "Next", rel: "next", look: "card docs-next" },
  ];
  return (
    <nav class="docs-neighbours" aria-label="Neighbouring pages">
      {neighbours.map(({ link, word, rel, look }) =>
        link === undefined ? (
          <span />
        ) : (
          <a class={look} href={docsPath(link.name)} rel={rel}>
            <span class="quiet small">{word}</span>
            {link.title}
          </a>
        ),
      )}
    </nav>
  );
}

function DocsFoot({ version, isLoggedIn }: DocsReader) {
  return (
    <p class="foot">
      Outgate {version} · <a href="/openapi.json">openapi.json</a> · <a href="/llms.txt">llms.txt</a>
      {isLoggedIn ? null : " · "}
      {isLoggedIn ? null : <a href="/login">Log in</a>}
    </p>
  );
}
