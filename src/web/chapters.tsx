/** @jsxImportSource hono/jsx */
import { openApiJson } from "../contract/openapi.ts";
import type { ApiDocument } from "./api-document.ts";
import { ApiReference } from "./api-reference.tsx";
import type { DocsChapter } from "./docs.tsx";
import { ErrorsGuide } from "./errors-guide.tsx";
import { type Guide, guideHtml } from "./guide.ts";
import { renderPart } from "./render.ts";

/** The chapters that are made of the contract itself stand behind this one. */
const BEFORE_API = "start";

/** The whole documentation, in order: the guides, and what the contract says of itself. */
export function chaptersOf(guides: readonly Guide[], baseUrl: string): readonly DocsChapter[] {
  // Safe: `openApiJson` prints it, and a test renders all of it.
  const document = JSON.parse(openApiJson(baseUrl)) as ApiDocument;
  const ofContract: readonly DocsChapter[] = [
    { name: "api", title: "API reference", html: renderPart(<ApiReference document={document} baseUrl={baseUrl} />) },
    { name: "errors", title: "Errors", html: renderPart(<ErrorsGuide />) },
  ];
  return guides.flatMap((guide) => {
    const chapter = { name: guide.name, title: guide.title, html: guideHtml(guide, guides, baseUrl) };
    return guide.name === BEFORE_API ? [chapter, ...ofContract] : [chapter];
  });
}
