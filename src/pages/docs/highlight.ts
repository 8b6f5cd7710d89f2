import { highlighter } from "./highlighter.js";

/** Labels of languages that the highlighter calls something else. */
const LABELS: Readonly<Record<string, string>> = { sh: "Shell", bash: "Shell", ini: "INI", toml: "TOML", php: "PHP" };

/**
 * Code as escaped HTML with the highlighter's classes. Only escapes code in an unknown language. Only for our own documents:
 * other people's code could take long.
 */
export function highlighted(code: string, language: string): string {
  if (highlighter.getLanguage(language) === undefined) return Bun.escapeHTML(code);
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}

/** A block of our own code with its language, as HTML. The script adds a copy button. */
export function codeBlock(code: string, language: string, title?: string): string {
  const label = Bun.escapeHTML(title ?? LABELS[language] ?? highlighter.getLanguage(language)?.name ?? "Text");
  // Wide code scrolls, so keyboards must be able to focus it (WCAG 2.1.1).
  return (
    `<figure class="sample"><figcaption>${label}</figcaption>` +
    `<pre class="sample-code" tabindex="0" role="group" aria-label="${label}" data-copy=""><code>` +
    `${highlighted(code, language)}\n</code></pre></figure>\n`
  );
}
