/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { Icon, type IconName } from "./icons.tsx";

interface MenuProps {
  readonly label: Child;
  /** Something else than the default is chosen. */
  readonly isChosen?: boolean;
  /** It drops down from its right edge, for menus at the right of a page. */
  readonly isAtEnd?: boolean;
  /** Its content is no list, and it has these classes. */
  readonly panel?: string | undefined;
  readonly isOpen?: boolean;
  readonly children?: Child;
}

/** A button that drops down a list. It works without script; the script closes it on Escape and on a click beside it. */
export function Menu({ label, isChosen = false, isAtEnd = false, panel, isOpen = false, children }: MenuProps) {
  const classes = ["menu", isChosen && "menu-chosen", isAtEnd && "menu-end", panel].filter(Boolean).join(" ");
  return (
    <details class={classes} open={isOpen}>
      <summary>
        {label}
        <Icon name="down" />
      </summary>
      {panel === undefined ? <ul class="menu-body">{children}</ul> : <div class="menu-body">{children}</div>}
    </details>
  );
}

interface ChoiceLink {
  readonly href: string;
  readonly name: Child;
  readonly isChosen: boolean;
}

function ChoiceLinks({ links }: { readonly links: readonly ChoiceLink[] }) {
  return (
    <>
      {links.map(({ href, name, isChosen }) => (
        <li>
          <a href={href} aria-current={isChosen ? "true" : undefined}>
            {name}
          </a>
        </li>
      ))}
    </>
  );
}

interface FilterMenuProps extends Pick<MenuProps, "label" | "isAtEnd" | "children"> {
  /** The first link, which removes the filter. */
  readonly all: string;
  readonly options: readonly (readonly [value: string, name: Child])[];
  /** Null: there is no filter. */
  readonly chosen: string | null;
  readonly path: (value: string | null) => string;
  /** What the menu leaves out. */
  readonly note?: string | undefined;
}

/** A menu of links that filter a list. */
export function FilterMenu({ all, options, chosen, path, note, children, ...menu }: FilterMenuProps) {
  const links = [[null, all] as const, ...options].map(([value, name]) => {
    return { href: path(value), name, isChosen: value === chosen };
  });
  return (
    <Menu isChosen={chosen !== null} {...menu}>
      <ChoiceLinks links={links} />
      {note === undefined ? null : <li class="menu-note quiet small">{note}</li>}
      {children}
    </Menu>
  );
}

export function FilterLinks({ label, links }: { readonly label: string; readonly links: readonly ChoiceLink[] }) {
  return (
    <nav class="filter-links" aria-label={label}>
      <ul class="chips">
        <ChoiceLinks links={links} />
      </ul>
    </nav>
  );
}

interface CopiedProps {
  /** Left out of what a caller wrote: the script reads that from the page, so that no attribute holds it. */
  readonly text?: string;
  readonly what: string;
  readonly children?: Child;
}

/** An id, a URL, a line of code with a button that copies it. The script shows that, where the browser allows copying. */
export function Copied({ text, what, children = <code>{text}</code> }: CopiedProps) {
  const source = text === undefined ? { "data-copy-near": "" } : { "data-copy-text": text };
  return (
    <span class="copied">
      <span>{children}</span>
      <button type="button" class="copy" {...source} title={`Copy ${what}`} hidden>
        <Icon name="copy" />
      </button>
    </span>
  );
}

/** Our own code, with a copy button that the script adds. */
export function CodeBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div class="stack">
      <pre class="code" data-copy="" role="group" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

interface EmptyStateProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: Child;
}

/** What a list or page says where there is nothing yet: what it is for, and the next step. */
export function EmptyState({ icon, title, children }: EmptyStateProps) {
  return (
    <section class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** The place of something that loads into it. Screen readers hear its label. */
export function Skeleton({ label }: { readonly label: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {[0, 1, 2, 3, 4, 5].map(() => (
        <i />
      ))}
    </div>
  );
}
