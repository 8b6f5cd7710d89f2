import { setImmediate as nextTurn } from "node:timers/promises";
import Type from "typebox";
import { DomainError } from "../../core/domain-error.ts";
import { createPageRoutes, pathParams } from "../../http/operation.ts";
import type { ApiOperation } from "../../http/openapi.ts";
import type { RequestContext } from "../../http/request.ts";
import { acceptsGzip, page, pageHeaders, seeOther } from "../../http/response.ts";
import { DOCS_SEARCH_PATH, docsPage, docsSearchPage } from "./frame.tsx";
import { GUIDE_GROUPS, GUIDES, guideText, llmsText } from "./guides.ts";
import { boundedQuery } from "./search.ts";
import type { DocsSite } from "./site.tsx";
import type { PageDeps } from "../frame/page-deps.ts";
import { createOwnTurns } from "../../runtime/fair-share.ts";

const NO_SUCH_PAGE = "The documentation has no such page.";

/** The documentation of this version. It needs no login. */
export function docsPages({ baseUrl, version, findSession }: PageDeps, operations: () => readonly ApiOperation[]) {
  let made: Promise<DocsSite> | null = null;
  // Imported for the first page, with the highlighter and the Markdown parser. Other work runs between what takes milliseconds.
  const make = async () => {
    await import("./highlight.ts");
    await nextTurn();
    const { createDocsSite } = await import("./site.tsx");
    await nextTurn();
    return createDocsSite(GUIDE_GROUPS, operations(), baseUrl);
  };
  const site = () => (made ??= make());
  const ownTurn = createOwnTurns();
  const docsReader = async (context: RequestContext) => ({
    version,
    isLoggedIn: (await findSession(context)) !== null,
  });

  const show = async (context: RequestContext, name: string): Promise<Response> => {
    const docs = await site();
    const reader = await docsReader(context);
    await ownTurn();
    const shown = await docs.page(name);
    if (shown === null) throw new DomainError("not_found", NO_SUCH_PAGE);
    await ownTurn();
    return answer(context, docsPage({ page: shown, site: docs, ...reader }));
  };
  const find = async (context: RequestContext): Promise<Response> => {
    const query = boundedQuery(new URLSearchParams(context.search).get("q") ?? "");
    const docs = await site();
    const reader = await docsReader(context);
    const search = await docs.search();
    await ownTurn();
    return answer(context, docsSearchPage({ query, hits: search(query), site: docs, ...reader }));
  };
  const asText = (name: string): Response => {
    const guide = GUIDES.find((one) => one.name === name);
    if (guide === undefined) throw new DomainError("not_found", "There is no such page. See /llms.txt for all pages.");
    return plain(guideText(guide, baseUrl), "text/markdown");
  };
  return createPageRoutes("own")
    .get("/docs", ({ context }) => show(context, "start"))
    .get(DOCS_SEARCH_PATH, ({ context }) => find(context))
    .get(
      "/docs/:name",
      ({ context, params: { name } }) => {
        if (name === "start") return seeOther("own", "/docs");
        return name.endsWith(".md") ? asText(name.slice(0, -3)) : show(context, name);
      },
      { params: NameParams },
    )
    .get("/docs/api/:name", ({ context, params: { name } }) => show(context, `api/${name}`), { params: NameParams })
    .get("/llms.txt", () => plain(llmsText(GUIDES, baseUrl), "text/plain"));
}

const NameParams = pathParams(Type.Object({ name: Type.String() }), NO_SUCH_PAGE);

const VARY = { vary: "Accept-Encoding" } as const;

/** Answers with compression, which is safe here: these pages contain no secret of the reader, not even a form token. */
function answer(context: RequestContext, html: string): Response {
  if (!acceptsGzip(context.request)) return page("own", html, { headers: VARY });
  return page("own", Bun.gzipSync(html), { headers: { ...VARY, "content-encoding": "gzip" } });
}

function plain(text: string, type: "text/plain" | "text/markdown"): Response {
  return new Response(text, { headers: { ...pageHeaders("own"), "content-type": `${type}; charset=utf-8` } });
}
