/** @jsxImportSource hono/jsx */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ApiOperation as Listed } from "../../http/openapi.ts";
import { renderPart } from "../../ui/layout.tsx";
import {
  type ApiEntry,
  type ApiGroup,
  apiReference,
  dereferenced,
  type ApiReference,
  groupEntries,
  schemaName,
} from "./api-reference.ts";
import { anchorName, API_BEGINNING, ApiIndex, ApiObjects, OperationReference, operationTitle } from "./api-pages.tsx";
import { ERROR_HEADINGS, ERROR_SECTIONS, ErrorsGuide } from "./errors.tsx";
import { docsPath, type Guide, type GuideGroup, guideText } from "./guides.ts";
import { type DocsHeading, type DocsSection, withoutMarkup, renderGuide } from "./markdown.ts";
import { createDocsSearch, type DocsEntry, type SearchDocs } from "./search.ts";

/** A page of the documentation, as the navigation shows it. */
interface DocsLink {
  /** Its path is `docsPath` of it. */
  readonly name: string;
  readonly title: string;
}

export interface DocsPage extends DocsLink {
  /** Trusted HTML. */
  readonly html: string;
  /** The headings that the page links to beside its text. */
  readonly headings: readonly DocsHeading[];
  /** It lays out two columns of its own. */
  readonly isOperation?: true;
}

interface DocsNavGroup {
  readonly title: string;
  readonly links: readonly DocsLink[];
}

export type DocsSite = ReturnType<typeof createDocsSite>;

const API: DocsLink = { name: "api", title: "API reference" };

const OBJECTS: DocsLink = { name: "api/objects", title: "Objects" };

const ERRORS: DocsLink = { name: "errors", title: "Errors" };

/** All pages of the documentation of this version. */
export function createDocsSite(groups: readonly GuideGroup[], operations: readonly Listed[], baseUrl: string) {
  const reference = apiReference(operations, baseUrl);
  const guides = groups.flatMap((group) => group.guides);
  const apiGroups = groupEntries(reference.entries);
  const makers = new Map<string, () => DocsPage | Promise<DocsPage>>([
    ...guides.map((guide) => [guide.name, () => guidePage(guide, guides, baseUrl)] as const),
    [API.name, () => indexPage(baseUrl, apiGroups)],
    [OBJECTS.name, () => objectsPage(reference)],
    [ERRORS.name, () => ({ ...ERRORS, html: renderPart(<ErrorsGuide />), headings: ERROR_HEADINGS })],
    ...reference.entries.map((entry) => [entryLink(entry).name, () => operationPage(entry, reference)] as const),
  ]);
  const made = new Map<string, DocsPage | Promise<DocsPage>>();
  let search: Promise<SearchDocs> | null = null;
  const about: DocsNavGroup = { title: "API", links: [API, OBJECTS, ERRORS] };
  return {
    /** The group about the API as a whole. */
    api: about,
    groups: [...groups.map(({ title, guides: links }): DocsNavGroup => ({ title, links })), about],
    /** The groups of operations, which the navigation shows only on API pages. */
    operations: apiGroups.map(({ title, entries }): DocsNavGroup => ({ title, links: entries.map(entryLink) })),
    /** The page with this name; null if there is none. Renders it when first asked. */
    async page(name: string): Promise<DocsPage | null> {
      const page = made.get(name) ?? makers.get(name)?.();
      if (page === undefined) return null;
      made.set(name, page);
      return page;
    },
    /** Searches the documentation. Builds the index when first asked. */
    async search(): Promise<SearchDocs> {
      search ??= buildIndex(guides, apiGroups, reference);
      return search;
    },
  };
}

function entryLink({ operationId: id }: ApiEntry): DocsLink {
  return { name: `api/${id}`, title: operationTitle(id) };
}

async function guidePage(guide: Guide, guides: readonly Guide[], baseUrl: string): Promise<DocsPage> {
  const { html, sections } = await renderGuide(guideText(guide, baseUrl), guides);
  const { name, title } = guide;
  return { name, title, html, headings: sections.filter(({ depth }) => depth > 1) };
}

function indexPage(baseUrl: string, groups: readonly ApiGroup[]): DocsPage {
  const titles = [...API_BEGINNING, ...groups.map(({ title }) => title)];
  const headings = titles.map((title) => ({ id: anchorName(title), text: title, depth: 2 }));
  return { ...API, html: renderPart(<ApiIndex baseUrl={baseUrl} groups={groups} />), headings };
}

function objectsPage(reference: ApiReference): DocsPage {
  // Leaves out request bodies, which are described with their operations.
  const sent = new Set(reference.entries.map(({ body }) => schemaName(body?.schema.$ref ?? "")));
  const names = Object.keys(reference.schemas).filter((id) => !sent.has(id));
  const headings = names.map((id) => ({ id, text: id, depth: 2 }));
  return { ...OBJECTS, html: renderPart(<ApiObjects reference={reference} names={names} />), headings };
}

function operationPage(entry: ApiEntry, reference: ApiReference): DocsPage {
  const html = renderPart(<OperationReference entry={entry} reference={reference} />);
  return { ...entryLink(entry), html, headings: [], isOperation: true };
}

async function buildIndex(
  guides: readonly Guide[],
  groups: readonly ApiGroup[],
  reference: ApiReference,
): Promise<SearchDocs> {
  const entries: DocsEntry[] = [];
  for (const guide of guides) {
    const { sections } = await renderGuide(guide.text, guides, () => "");
    entries.push(...sectionEntries(guide, sections));
    // A long guide takes milliseconds.
    await nextTurn();
  }
  const operations = groups.flatMap(({ entries: all }) => all.map((entry) => apiEntry(entry, reference)));
  return createDocsSearch([...entries, ...operations, ...sectionEntries(ERRORS, ERROR_SECTIONS)]);
}

function sectionEntries({ name, title }: DocsLink, sections: readonly DocsSection[]): readonly DocsEntry[] {
  return sections.map(({ id, text, depth, body }) => ({
    path: depth === 1 ? docsPath(name) : `${docsPath(name)}#${id}`,
    page: title,
    heading: text,
    text: body,
  }));
}

function apiEntry(entry: ApiEntry, { schemas }: ApiReference): DocsEntry {
  const { method, path, summary, description, notes = [], parameters, body } = entry;
  const { properties = {} } = body === null ? {} : dereferenced(body.schema, schemas);
  const fields = [...parameters.map(({ name }) => name), ...Object.keys(properties)];
  return {
    path: docsPath(entryLink(entry).name),
    page: API.title,
    heading: entryLink(entry).title,
    summary,
    text: withoutMarkup(`${method} ${path} ${[description, ...notes].join(" ")} ${fields.join(", ")}`),
  };
}
