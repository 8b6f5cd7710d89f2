import {
  DOCS_INDEXED_AT_ONCE,
  DOCS_HITS_MAX,
  DOCS_QUERY_CHARS_MAX,
  DOCS_QUERY_WORDS_MAX,
  DOCS_SNIPPET_CHARS,
} from "../../core/limits.ts";

/** A part of a page that the search can find: the text below one heading. */
export interface DocsEntry {
  /** With the anchor. */
  readonly path: string;
  /** The title of the page. */
  readonly page: string;
  /** The heading, or the page's title for its beginning. */
  readonly heading: string;
  /** Searched like the heading, but not shown. */
  readonly summary?: string;
  readonly text: string;
}

export interface DocsHit extends Pick<DocsEntry, "path" | "page" | "heading"> {
  /** Words around the first match, with all matches marked. */
  readonly snippet: readonly { readonly text: string; readonly isFound: boolean }[];
}

/** Finds entries with every word of the query, best first, or else entries with some of the words. */
export type SearchDocs = (query: string) => readonly DocsHit[];

/** Indexes all entries in small steps, so that other requests get a turn. A search takes a few milliseconds at most. */
export async function createDocsSearch(entries: readonly DocsEntry[]): Promise<SearchDocs> {
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch<DocsEntry & { readonly id: number }>({ fields: ["heading", "summary", "page", "text"] });
  await index.addAllAsync(
    entries.map((entry, id) => ({ ...entry, id })),
    { chunkSize: DOCS_INDEXED_AT_ONCE },
  );
  return (query) => {
    const words = searchWords(query);
    if (words.length === 0) return [];
    const find = (combineWith: "AND" | "OR", fuzzy: number) =>
      index.search(words.join(" "), {
        boost: { heading: 4, summary: 2, page: 2 },
        combineWith,
        // Too many words begin with the same two letters.
        prefix: (word) => word.length > 2,
        fuzzy: (word) => word.length > 4 && fuzzy,
        maxFuzzy: 2,
        weights: { prefix: 0.5, fuzzy: 0.2 },
      });
    // Costlier searches only if nothing was found: similar spellings, then some of the words.
    const exact = find("AND", 0);
    const near = exact.length === 0 ? find("AND", 0.2) : exact;
    const found = near.length === 0 ? find("OR", 0.2) : near;
    return found.slice(0, DOCS_HITS_MAX).flatMap(({ id, terms }) => {
      const entry = entries[Number(id)];
      return entry === undefined ? [] : [{ ...entry, snippet: makeSnippet(entry.text, terms) }];
    });
  };
}

/** The query that is searched and shown again, cut to a bound. */
export function boundedQuery(query: string): string {
  return query.slice(0, DOCS_QUERY_CHARS_MAX).trim();
}

function searchWords(query: string): readonly string[] {
  const words = boundedQuery(query)
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  const long = words.filter((word) => word.length > 1);
  // Single letters say little beside words.
  return (long.length > 0 ? long : words.filter((word) => word !== "")).slice(0, DOCS_QUERY_WORDS_MAX);
}

function makeSnippet(text: string, terms: readonly string[]): DocsHit["snippet"] {
  const lower = text.toLowerCase();
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place !== -1);
  const first = places.length === 0 ? 0 : Math.min(...places);
  // Includes a little text before the match, from the beginning of a word.
  const start = first < DOCS_SNIPPET_CHARS / 3 ? 0 : text.indexOf(" ", first - DOCS_SNIPPET_CHARS / 3) + 1;
  const end = Math.min(text.length, start + DOCS_SNIPPET_CHARS);
  const shown = `${start > 0 ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
  // Splits between words, so that whole words are marked.
  return shown.split(/(?<=[^\p{L}\p{N}])|(?=[^\p{L}\p{N}])/u).map((part) => ({
    text: part,
    isFound: terms.some((term) => part.toLowerCase() === term),
  }));
}
