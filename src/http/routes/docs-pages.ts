import { DomainError } from "../../domain/errors.ts";
import { chaptersOf } from "../../web/chapters.tsx";
import { type DocsChapter, docsPage, llmsText } from "../../web/docs.tsx";
import { type Guide, guideText } from "../../web/guide.ts";
import { takesGzip } from "../accept.ts";
import { page, pageHeaders, seeOther } from "../page.ts";
import { pageRoute, type Route } from "../route.ts";
import type { PersonOf } from "../session.ts";
import type { RequestContext } from "../visit.ts";

export interface DocsPageDeps {
  /** Documents for users; the first one is that of /docs itself. */
  readonly guides: readonly Guide[];
  readonly baseUrl: string;
  readonly version: string;
  readonly personOf: PersonOf;
}

/** The documentation: it needs no log-in, no network and no script, and speaks of this very version (decisions 1). */
export function docsPages({ guides, baseUrl, version, personOf }: DocsPageDeps): readonly Route[] {
  let made: readonly DocsChapter[] | null = null;
  // Once, for whoever reads first: it takes some ten milliseconds.
  const chapters = () => (made ??= chaptersOf(guides, baseUrl));

  const show = async (context: RequestContext, name: string): Promise<Response> => {
    const chapter = chapters().find((one) => one.name === name);
    if (chapter === undefined) throw new DomainError("not_found", "There is no such page. /docs has all of them.");
    const html = docsPage({ chapter, chapters: chapters(), user: await personOf(context), version });
    // Nothing in it was chosen by a stranger, so its length tells nothing of the token of its forms.
    if (!takesGzip(context.request)) return page("own", html, { headers: VARY });
    return page("own", Bun.gzipSync(html), { headers: { ...VARY, "content-encoding": "gzip" } });
  };
  const asText = (name: string): Response => {
    const guide = guides.find((one) => one.name === name);
    if (guide === undefined) throw new DomainError("not_found", "There is no such page. /llms.txt has all of them.");
    return plain(guideText(guide, baseUrl), "text/markdown");
  };
  return [
    pageRoute("own", "GET", "/docs", (context) => show(context, "start")),
    pageRoute("own", "GET", "/docs/{name}", (context, { name = "" }) => {
      if (name === "start") return seeOther("own", "/docs");
      return name.endsWith(".md") ? asText(name.slice(0, -3)) : show(context, name);
    }),
    pageRoute("own", "GET", "/llms.txt", () => plain(llmsText(guides, baseUrl), "text/plain")),
  ];
}

const VARY = { vary: "Accept-Encoding" } as const;

function plain(text: string, type: "text/plain" | "text/markdown"): Response {
  return new Response(text, { headers: { ...pageHeaders("own"), "content-type": `${type}; charset=utf-8` } });
}
