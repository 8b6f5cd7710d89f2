/** @jsxImportSource hono/jsx */

export interface SnippetProps {
  /** What it is for. */
  readonly title: string;
  readonly text: string;
}

/** Lines of ours to copy, as they stand. */
export function SnippetView({ title, text }: SnippetProps) {
  return (
    <div class="stack">
      <h3>{title}</h3>
      <pre class="code" data-copy="">
        {text}
      </pre>
    </div>
  );
}
