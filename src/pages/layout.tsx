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
  /** Null or left out: nobody is logged in, and there is no navigation. */
  readonly user?: PageUser | null;
  /** The current entry of the navigation. */
  readonly place?: Place;
  /** The width of the content; "text" by default. */
  readonly width?: "narrow" | "text" | "wide";
  /** A standalone page with inline style: its CSP sandbox can't load files. */
  readonly isAlone?: boolean;
  /** An additional stylesheet. */
  readonly style?: Asset;
  /** It has a login form. */
  readonly beginsSession?: boolean;
  /** Which events update the page: those of one action, by its ID, or all. Left out: none. */
  readonly follows?: string;
  /** The server's time, for pages that show relative times. */
  readonly now?: Date;
  readonly children?: Child;
}

/** Updates the page on every event of the account. */
export const EVERYTHING = "all";

/** The frame of every page. */
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

/** A standalone page can't load files. */
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

/** The main navigation. */
export const NAVIGATION = [
  { name: "Overview", path: "/overview" },
  { name: "Approvals", path: "/approvals" },
  { name: "Actions", path: "/actions" },
  { name: "Keys", path: "/keys" },
  { name: "Settings", path: "/settings" },
  { name: "Docs", path: "/docs" },
] as const;

export type Place = (typeof NAVIGATION)[number]["name"];

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Renders a page as HTML. Throws if a part is asynchronous: read all data before. */
export function render(page: Html): string {
  return `<!doctype html>${renderPart(page)}`;
}

/** Renders a part of a page. */
export function renderPart(part: Html): string {
  if (part instanceof Promise) throw new Error("A page is made of data that is there.");
  const text: unknown = part.toString();
  if (typeof text !== "string") throw new Error("A part of a page is made of data that is there.");
  return text;
}

export const ACTIONS_PATH = "/actions";

/** Parameters to change; undefined removes one. */
export type ListChanges = { readonly [Name in keyof ListQuery]?: ListQuery[Name] | undefined };

/** The path of the list with these filters and changes. */
export function listPath(query: ListQuery, changes: ListChanges = {}): string {
  const pairs = Object.entries({ ...query, ...changes }).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((one) => (one === undefined || one === "" ? [] : [[name, String(one)] as [string, string]]));
  });
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${text}`;
}

export function actionPath(id: string): string {
  return `${ACTIONS_PATH}/${id}`;
}
