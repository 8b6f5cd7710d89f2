import { highlighter } from "./highlighter.js";

/** What people call a language, where the highlighter has another name for it. */
const LABELS: Readonly<Record<string, string>> = { sh: "Shell", bash: "Shell", ini: "INI", toml: "TOML", php: "PHP" };

function languageLabel(written: string): string {
  return LABELS[written] ?? highlighter.getLanguage(written)?.name ?? "Text";
}

/**
 * Code as HTML, escaped, with the highlighter's classes. Code in a language that is not known here is only escaped. For our own
 * documents: what somebody else wrote could take long.
 */
export function highlighted(code: string, language: string): string {
  if (highlighter.getLanguage(language) === undefined) return Bun.escapeHTML(code);
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}

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
