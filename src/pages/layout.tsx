/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { APP_STYLE, type Asset, ICON, LIVE, SESSION, STYLE } from "./assets.ts";
import { Button, FormToken } from "./form.tsx";
import type { PageUser } from "./words.ts";
import type { HtmlEscapedString } from "hono/utils/html";
import type { ListQuery } from "../actions/list-schemas.ts";

export interface LayoutProps {
  readonly title: string;
  /** Null or left out: nobody is signed in, and there is nothing to go to. */
  readonly user?: PageUser | null;
  /** The page of the navigation that this is. */
  readonly place?: Place;
  /** How much of a wide screen is used; "text" unless it is said. */
  readonly width?: "narrow" | "text" | "wide";
  /** A token page stands alone, with its style in it: its sandbox may load nothing (hostile 7). */
  readonly isAlone?: boolean;
  /** What this page needs beside what all of them have. */
  readonly style?: Asset;
  /** A form on it begins a session. */
  readonly beginsSession?: boolean;
  /** What of the account's events changes this page: those of one action, by its id, or all. Left out: nothing does. */
  readonly follows?: string;
  /** When it was made, where it tells how long ago things were. */
  readonly now?: Date;
  readonly children?: Child;
}

/** Follows everything that happens in the account. */
export const EVERYTHING = "all";

/** The frame of every page: head, brand, navigation, and the one `main`. */
export function Layout(props: LayoutProps) {
  const { user = null, place, width = "text", isAlone = false, follows, now, children } = props;
  return (
    <html lang="en" class={width}>
      <Head {...props} />
      <body>
        {user === null ? null : (
          <a class="skip" href="#main">
            Skip to content
          </a>
        )}
        <header class="top">
          <div class="top-row">
            {isAlone ? (
              <span class="brand">Outgate</span>
            ) : (
              <a class="brand" href="/">
                Outgate
              </a>
            )}
            {user === null ? null : <Navigation place={place} user={user} />}
          </div>
        </header>
        <main id="main" data-follows={follows} data-now={now?.toISOString()}>
          {children}
        </main>
      </body>
    </html>
  );
}

function Head({ title, user = null, isAlone = false, beginsSession = false, style }: LayoutProps) {
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>{`${title} · Outgate`}</title>
      {isAlone ? (
        <style>{raw(STYLE.text)}</style>
      ) : (
        <>
          <link rel="stylesheet" href={STYLE.path} />
          <link rel="stylesheet" href={APP_STYLE.path} />
          {style === undefined ? null : <link rel="stylesheet" href={style.path} />}
        </>
      )}
      {user === null && !beginsSession ? null : <script type="module" src={SESSION.path} />}
      {user === null ? null : <script type="module" src={LIVE.path} />}
      <link rel="icon" type={ICON.type} href={isAlone ? ICON_IN_PAGE : ICON.path} />
    </head>
  );
}

/** A token page may load nothing. */
const ICON_IN_PAGE = `data:${ICON.type},${encodeURIComponent(ICON.text)}`;

function Navigation({ place, user }: { readonly place: Place | undefined; readonly user: PageUser }) {
  return (
    <>
      <nav aria-label="Main">
        <ul>
          {NAVIGATION.map(({ name, path }) => (
            <li>
              <a href={path} aria-current={name === place ? "page" : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <form class="person" method="post" action="/auth/logout">
        <FormToken user={user} />
        <span title={user.email}>{user.email}</span>
        <Button look="link">Log out</Button>
      </form>
    </>
  );
}

/** The pages that somebody who is signed in gets to from every other one, in this order. A new page is a row here. */
export const NAVIGATION = [
  { name: "Overview", path: "/overview" },
  { name: "Approvals", path: "/approvals" },
  { name: "Actions", path: "/actions" },
  { name: "Keys", path: "/keys" },
  { name: "Settings", path: "/settings" },
  { name: "Docs", path: "/docs" },
] as const;

export type Place = (typeof NAVIGATION)[number]["name"];

/** A page, or a part of one, before it is text. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** A whole page as HTML text. Throws where a part of it is asynchronous: data is read before a page is written. */
export function render(page: Html): string {
  return `<!doctype html>${renderPart(page)}`;
}

/** The same of a part that stands on pages later. */
export function renderPart(part: Html): string {
  if (part instanceof Promise) throw new Error("A page is made of data that is there.");
  const text: unknown = part.toString();
  if (typeof text !== "string") throw new Error("A part of a page is made of data that is there.");
  return text;
}

export const ACTIONS_PATH = "/actions";

/** Parameters to set anew; undefined takes one away. */
export type ListChanges = { readonly [Name in keyof ListQuery]?: ListQuery[Name] | undefined };

/** The path of a list with these filters, which are those of the API, with some of them changed. */
export function listPath(query: ListQuery, changes: ListChanges = {}): string {
  const pairs = Object.entries({ ...query, ...changes }).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((one) => (one === undefined || one === "" ? [] : [[name, String(one)] as [string, string]]));
  });
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${text}`;
}

/** The page of one action. */
export function actionPath(id: string): string {
  return `${ACTIONS_PATH}/${id}`;
}
