/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";

export function DocsSubheading({ id, children }: { readonly id: string; readonly children?: Child }) {
  return (
    <h2 id={id}>
      {children}
      <a class="anchor" href={`#${id}`} aria-label="Link to this section">
        #
      </a>
    </h2>
  );
}
