import { expect, test } from "bun:test";
import { chaptersOf } from "../../src/pages/docs.tsx";

const about = { about: "", title: "" };

test("a document becomes safe HTML: no markup of its own, and links only to what is served", () => {
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
  const guides = [
    { name: "start", text, ...about },
    { name: "delivery", text: "# Delivery", ...about },
  ];
  const html = chaptersOf(guides, [], "http://outgate.example")[0]?.html ?? "";
  expect(html).toContain('<h1 id="its-a-title">It&#39;s a <code>title</code></h1>');
  expect(html).toContain('<h2 id="twice">Twice</h2>\n<h2 id="twice-1">Twice</h2>');
  expect(html).not.toMatch(/<(script|b|i|img)\b|javascript:/);
  expect([...html.matchAll(/<a [^>]*>[^<]*<\/a>/g)].map(([link]) => link)).toEqual([
    '<a href="/docs/delivery#retries">served</a>',
    '<a href="/docs/api">ours</a>',
    '<a href="https://b.example/?a=1&amp;b=2">theirs</a>',
  ]);
  expect(html).toContain('<pre class="code"><code class="language-sh">echo &quot;&lt;x&gt;&quot;\n</code></pre>');
  expect(html).toContain('<div class="table" role="group" aria-label="Table" tabindex="0"><table>');
  expect(html).toContain('<th scope="col">A</th>');
});
