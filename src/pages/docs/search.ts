import MiniSearch from "minisearch";
import { DOCS_HITS_MAX, DOCS_QUERY_CHARS_MAX, DOCS_QUERY_WORDS_MAX, DOCS_SNIPPET_CHARS } from "../../config/limits.ts";

/** A part of a page that can be found: what stands below one heading. */
export interface DocsEntry {
  /** With the anchor. */
  readonly path: string;
  /** The title of the page. */
  readonly page: string;
  /** The title of the page again where the entry is its beginning. */
  readonly heading: string;
  /** On one line. */
  readonly text: string;
}

export interface DocsHit extends Pick<DocsEntry, "path" | "page" | "heading"> {
  /** Words around the first one that was found; those that were found are marked. */
  readonly snippet: readonly { readonly text: string; readonly isFound: boolean }[];
}

/** The entries that have every word of the query, best first; without one, those that have some of them. */
export type SearchDocs = (query: string) => readonly DocsHit[];

/** Indexes all entries, which takes some milliseconds. A search takes less than one, whatever is asked. */
export function createDocsSearch(entries: readonly DocsEntry[]): SearchDocs {
  const index = new MiniSearch<DocsEntry & { readonly id: number }>({ fields: ["heading", "page", "text"] });
  index.addAll(entries.map((entry, id) => ({ ...entry, id })));
  return (query) => {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    const find = (combineWith: "AND" | "OR") =>
      index.search(words.join(" "), {
        boost: { heading: 4, page: 2 },
        combineWith,
        prefix: (word) => word.length > 1,
        fuzzy: (word) => (word.length > 4 ? 0.2 : false),
        maxFuzzy: 2,
        weights: { prefix: 0.5, fuzzy: 0.2 },
      });
    const all = find("AND");
    const found = all.length === 0 ? find("OR") : all;
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
  // A letter tells little beside a word.
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
