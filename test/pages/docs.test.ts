import { describe, expect, test } from "bun:test";
import { DOCS_HITS_MAX, DOCS_QUERY_CHARS_MAX, DOCS_SNIPPET_CHARS } from "../../src/core/limits.ts";
import { GUIDE_GROUPS, GUIDES } from "../../src/pages/docs/guides.ts";
import { highlighted } from "../../src/pages/docs/highlight.ts";
import { renderGuide } from "../../src/pages/docs/markdown.ts";
import { boundedQuery, createDocsSearch } from "../../src/pages/docs/search.ts";
import { createDocsSite } from "../../src/pages/docs/site.tsx";
import { turnsDuring } from "../support/core.ts";
import { OPERATIONS } from "../support/operations.ts";

const about = { about: "", title: "" };

const SITE = createDocsSite(GUIDE_GROUPS, OPERATIONS, "http://o.example");

describe("a document", () => {
  test("becomes safe HTML: no markup of its own, and links only to what is served", async () => {
    const text = [
      "# It's a `title`",
      "## Twice",
      "## Twice",
      "<script>alert(1)</script>",
      "A <b onclick=x>word</b>, ![image](https://a.example/i.png), https://bare.example and [bad](javascript:alert(1)).",
      "[served](../delivery.md#retries), [source](../src/main.ts), [ours](/docs/api), [theirs](https://b.example/?a=1&b=2)",
      '```sh\necho "<x>"\n```',
      "| A | B |\n| - | - |\n| 1 | `<i>` |",
    ].join("\n\n");
    const { html } = await renderGuide(text, [{ name: "delivery", text: "# Delivery", ...about }]);
    expect(html).toContain('<h1 id="its-a-title">It&#39;s a <code>title</code></h1>');
    expect(html).toMatch(/<h2 id="twice">Twice<a class="anchor" href="#twice"[^>]*>#<\/a><\/h2>/);
    expect(html).toContain('<h2 id="twice-1">');
    expect(html).not.toMatch(/<(script|b|i|img)\b|javascript:/);
    expect([...html.matchAll(/<a href[^>]*>[^<]*<\/a>/g)].map(([link]) => link)).toEqual([
      '<a href="/docs/delivery#retries">served</a>',
      '<a href="/docs/api">ours</a>',
      '<a href="https://b.example/?a=1&amp;b=2">theirs</a>',
    ]);
    expect(html).toContain(
      '<span class="hljs-built_in">echo</span> <span class="hljs-string">&quot;&lt;x&gt;&quot;</span>',
    );
    expect(html).toContain('<div class="table" role="group" aria-label="Table" tabindex="0"><table>');
    expect(html).toContain('<th scope="col">A</th>');
  });

  test("lets other work run between its blocks of code", async () => {
    const text = ["sh", "ts", "python", "go"].map((language) => `\`\`\`${language}\nx = 1\n\`\`\``).join("\n\n");
    expect(await turnsDuring(() => renderGuide(text, []))).toBeGreaterThan(2);
  });

  test("is told to the search by its headings, without marks", async () => {
    const { sections } = await renderGuide(
      "# One\n\nA [link](a.md) to `code`.\n\n- It is a-b.\n\n## Two\n\n| a |\n|---|\n| b |\n",
      [],
    );
    expect(sections).toEqual([
      { id: "one", depth: 1, text: "One", body: "A link to code. It is a-b." },
      { id: "two", depth: 2, text: "Two", body: "a b" },
    ]);
  });
});

test("code has classes and no style, whatever is written in it, and none in a language that is not known", () => {
  for (const language of ["sh", "ts", "python", "json", "sql", "go"]) {
    const html = highlighted(`"<span class="hljs-x">" </code><script> # <b> 'x' 12`, language);
    expect(html.replaceAll(/<span class="hljs-[a-z_ -]+">|<\/span>/g, "")).not.toMatch(/[<>]/);
  }
  expect(highlighted("<x> if", "cobol")).toBe("&lt;x&gt; if");
});

describe("a search", () => {
  const found = async (query: string) => (await SITE.search())(query).map(({ path }) => path);

  test("finds an operation first by the name that its page has", async () => {
    expect((await found("retry action"))[0]).toBe("/docs/api/retryAction");
    expect((await found("create action"))[0]).toBe("/docs/api/createAction");
  });

  test("finds a heading before a mention, by any beginning of a word, and with a slip of the finger", async () => {
    expect((await found("rotate a secret")).slice(0, 2)).toContain("/docs/verify#rotate-a-secret");
    expect((await found("create an action"))[0]).toBe("/docs/api/createAction");
    expect(await found("rate_limited")).toContain("/docs/errors#rate_limited");
    expect((await found("idempot")).length).toBeGreaterThan(2);
    expect((await found("aproval"))[0]).toContain("approv");
  });

  test("needs all words, and takes some where no part has all", async () => {
    const search = await createDocsSearch([
      { path: "/both", page: "P", heading: "A callback", text: "Its signature is checked." },
      { path: "/one", page: "P", heading: "A callback", text: "It is sent." },
    ]);
    const paths = (query: string) => search(query).map(({ path }) => path);
    expect(paths("callback signature")).toEqual(["/both"]);
    expect(paths("callback xyzzyplugh").toSorted()).toEqual(["/both", "/one"]);
    expect(paths("xyzzyplugh")).toEqual([]);
    expect(await found("  ,;. ")).toEqual([]);
  });

  test("is bounded in its query, its results and their text", async () => {
    expect(boundedQuery("x".repeat(10_000))).toHaveLength(DOCS_QUERY_CHARS_MAX);
    const hits = (await SITE.search())("a e i o the of action request key call");
    expect(hits.length).toBeLessThanOrEqual(DOCS_HITS_MAX);
    const most = (await SITE.search())("action");
    expect(most).toHaveLength(DOCS_HITS_MAX);
    for (const { snippet } of most) {
      expect(snippet.map(({ text }) => text).join("").length).toBeLessThanOrEqual(DOCS_SNIPPET_CHARS + 4);
    }
  });

  test("marks the words that were found", async () => {
    const search = await createDocsSearch([
      { path: "/p", page: "P", heading: "H", text: "It retries, and retries again." },
    ]);
    const [hit] = search("retr");
    expect(hit?.snippet.filter(({ isFound }) => isFound).map(({ text }) => text)).toEqual(["retries", "retries"]);
    expect(hit?.snippet.map(({ text }) => text).join("")).toBe("It retries, and retries again.");
  });

  test("leads only to pages that are there, whose parts have the headings", async () => {
    for (const query of GUIDES.map(({ title }) => title)) {
      for (const path of await found(query)) {
        const [page = "", part] = path.split("#");
        const shown = await SITE.page(page === "/docs" ? "start" : page.slice("/docs/".length));
        const html = shown?.html ?? "";
        expect(part === undefined ? html !== "" : html.includes(` id="${part}"`), path).toBe(true);
      }
    }
  });
});

test("every operation has a page of its own in one group of the navigation, and the pages are in one order", async () => {
  const links = SITE.operations.flatMap((group) => group.links);
  expect(links.map(({ name }) => name).toSorted()).toEqual(OPERATIONS.map(({ id }) => `api/${id}`).toSorted());
  expect(await SITE.page("api/createAction")).toBe(await SITE.page("api/createAction"));
  for (const name of ["", "api/", "api/nothing", "api/createaction", "start.md", "__proto__"]) {
    expect(await SITE.page(name), name).toBeNull();
  }
});
