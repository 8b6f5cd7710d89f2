/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { FLASH_MS_MAX } from "../core/limits.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Notice } from "./parts.tsx";
import { duration } from "./text.ts";

interface MenuProps {
  readonly label: Child;
  /** Whether something other than the default is chosen. */
  readonly isChosen?: boolean;
  /** Whether to align it at the right, for menus on the right of a page. */
  readonly isAtEnd?: boolean;
  /** The classes of content that is no list. */
  readonly panel?: string | undefined;
  readonly isOpen?: boolean;
  readonly children?: Child;
}

/** A button that drops down a list, without script too. The script closes it on Escape and on a click outside. */
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
  /** Null for no filter. */
  readonly chosen: string | null;
  readonly path: (value: string | null) => string;
  /** A note on what the menu leaves out. */
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
  /** Left out for a caller's text: the script reads it from the page, so that no attribute contains it. */
  readonly text?: string;
  readonly what: string;
  readonly children?: Child;
}

/** An id, URL or line of code with a copy button, which the script shows if the browser allows copying. */
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

/** Tells people that only this page shows the secret. */
export function ShownOnce({ what }: { readonly what: string }) {
  return (
    <Notice tone="wait">
      {`${what} is shown only once. Save it now: it disappears when you leave this page, and after ${duration(FLASH_MS_MAX)} at the latest.`}
    </Notice>
  );
}

interface SecretProps {
  readonly id?: string;
  readonly title?: string;
  readonly text: string;
  readonly children?: Child;
}

/** A secret on its own line. The script adds a copy button. */
export function Secret({ id, title, text, children }: SecretProps) {
  return (
    <div class="stack">
      {title === undefined ? null : <h2>{title}</h2>}
      <code class="code" id={id} data-copy="">
        {text}
      </code>
      {children}
    </div>
  );
}

interface EmptyStateProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: Child;
}

/** Shown in place of an empty list or page: what it is for, and the next step. */
export function EmptyState({ icon, title, children }: EmptyStateProps) {
  return (
    <section class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A placeholder for something that is loading. Screen readers get its label. */
export function Skeleton({ label }: { readonly label: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {[0, 1, 2, 3, 4, 5].map(() => (
        <i />
      ))}
    </div>
  );
}
