import {
  DOCS_INDEXED_AT_ONCE,
  DOCS_HITS_MAX,
  DOCS_QUERY_CHARS_MAX,
  DOCS_QUERY_WORDS_MAX,
  DOCS_SNIPPET_CHARS,
} from "../../core/limits.ts";

/** A part of a page that can be found: what stands below one heading. */
export interface DocsEntry {
  /** With the anchor. */
  readonly path: string;
  /** The title of the page. */
  readonly page: string;
  /** The title of the page again where the entry is its beginning. */
  readonly heading: string;
  /** Found like the heading, and not shown. */
  readonly summary?: string;
  readonly text: string;
}

export interface DocsHit extends Pick<DocsEntry, "path" | "page" | "heading"> {
  /** Words around the first one that was found; those that were found are marked. */
  readonly snippet: readonly { readonly text: string; readonly isFound: boolean }[];
}

/** The entries that have every word of the query, best first; without one, those that have some of them. */
export type SearchDocs = (query: string) => readonly DocsHit[];

/** Indexes all entries in small steps, between which others are served. A search takes a millisecond, and at most some. */
export async function createDocsSearch(entries: readonly DocsEntry[]): Promise<SearchDocs> {
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch<DocsEntry & { readonly id: number }>({ fields: ["heading", "summary", "page", "text"] });
  await index.addAllAsync(
    entries.map((entry, id) => ({ ...entry, id })),
    { chunkSize: DOCS_INDEXED_AT_ONCE },
  );
  return (query) => {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    const find = (combineWith: "AND" | "OR", fuzzy: number) =>
      index.search(words.join(" "), {
        boost: { heading: 4, summary: 2, page: 2 },
        combineWith,
        // Two letters begin too many words.
        prefix: (word) => word.length > 2,
        fuzzy: (word) => word.length > 4 && fuzzy,
        maxFuzzy: 2,
        weights: { prefix: 0.5, fuzzy: 0.2 },
      });
    // What costs more, only where there is nothing else: words that are written differently, then some of the words.
    const exact = find("AND", 0);
    const near = exact.length === 0 ? find("AND", 0.2) : exact;
    const found = near.length === 0 ? find("OR", 0.2) : near;
    return found.slice(0, DOCS_HITS_MAX).flatMap(({ id, terms }) => {
      const entry = entries[Number(id)];
      return entry === undefined ? [] : [{ ...entry, snippet: snippetOf(entry.text, terms) }];
    });
  };
}

/** The query as it is searched, which the page shows again. */
export function boundedQuery(query: string): string {
  return query.slice(0, DOCS_QUERY_CHARS_MAX).trim();
}

function wordsOf(query: string): readonly string[] {
  const words = boundedQuery(query)
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  const long = words.filter((word) => word.length > 1);
  // A letter says little beside a word.
  return (long.length > 0 ? long : words.filter((word) => word !== "")).slice(0, DOCS_QUERY_WORDS_MAX);
}

function snippetOf(text: string, terms: readonly string[]): DocsHit["snippet"] {
  const lower = text.toLowerCase();
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place !== -1);
  const first = places.length === 0 ? 0 : Math.min(...places);
  // A little of what stands before it, from the beginning of a word.
  const start = first < DOCS_SNIPPET_CHARS / 3 ? 0 : text.indexOf(" ", first - DOCS_SNIPPET_CHARS / 3) + 1;
  const end = Math.min(text.length, start + DOCS_SNIPPET_CHARS);
  const shown = `${start > 0 ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
  // Split at the ends of words: the script of search engines, too, marks whole ones.
  return shown.split(/(?<=[^\p{L}\p{N}])|(?=[^\p{L}\p{N}])/u).map((part) => ({
    text: part,
    isFound: terms.some((term) => part.toLowerCase() === term),
  }));
}
