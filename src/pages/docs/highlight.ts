import { highlighter } from "./highlighter.js";

/** What people call a language, where the highlighter has another name for it. */
const LABELS: Readonly<Record<string, string>> = { sh: "Shell", bash: "Shell", ini: "INI", toml: "TOML", php: "PHP" };

function languageLabel(written: string): string {
  return LABELS[written] ?? highlighter.getLanguage(written)?.name ?? "Text";
}

/**
 * Code as HTML, escaped, with a class of ours for each kind of word. Code in a language that is not known here is only
 * escaped. For our own documents: what somebody else wrote could take long.
 */
export function highlighted(code: string, language: string): string {
  if (highlighter.getLanguage(language) === undefined) return Bun.escapeHTML(code);
  const html = highlighter.highlight(code, { language, ignoreIllegals: true }).value;
  // The library writes its spans so and in no other way, and escapes every < and " of the code.
  return html.replaceAll(/<span class="hljs-([a-z_]{1,20})([^"]{0,40})">/g, (_span, scope: string) => {
    const kind = KINDS[scope];
    return kind === undefined ? "<span>" : `<span class="${kind}">`;
  });
}

/** Few colours: what is written in quotes, numbers, names, words of the language, remarks. */
const KINDS: Readonly<Record<string, string>> = {
  string: "code-text",
  regexp: "code-text",
  symbol: "code-text",
  number: "code-number",
  literal: "code-number",
  variable: "code-number",
  attr: "code-name",
  property: "code-name",
  title: "code-name",
  section: "code-name",
  keyword: "code-word",
  built_in: "code-word",
  type: "code-word",
  comment: "code-note",
};

/** A block of our own code with its language, as HTML. The script adds a copy button; without it the text can be selected. */
export function codeBlock(code: string, language: string, title = languageLabel(language)): string {
  const label = Bun.escapeHTML(title);
  // It may be wider than the screen: it scrolls, and can be focused by keyboard (WCAG 2.1.1).
  return (
    `<figure class="sample"><figcaption>${label}</figcaption>` +
    `<pre class="sample-code" tabindex="0" role="group" aria-label="${label}" data-copy=""><code>` +
    `${highlighted(code, language)}\n</code></pre></figure>\n`
  );
}
