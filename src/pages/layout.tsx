/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { HtmlEscapedString } from "hono/utils/html";
import { mayDo } from "../accounts/roles.ts";
import type { ListQuery } from "../actions/list-schemas.ts";
import { APP_STYLE, type Asset, ICON, LIVE, SESSION, STYLE } from "./assets.ts";
import { Button, PostForm } from "./form.tsx";
import type { PageUser } from "./text.ts";

interface LayoutProps {
  readonly title: string;
  /** Null or left out: nobody is logged in, and there is no navigation. */
  readonly user?: PageUser | null;
  /** The current entry of the navigation. */
  readonly nav?: (typeof NAVIGATION)[number]["name"] | undefined;
  /** The width of the content; "text" by default. */
  readonly width?: "narrow" | "text" | "wide";
  /** A standalone page with inline style: its CSP sandbox can't load files. */
  readonly isStandalone?: boolean;
  /** An additional stylesheet. */
  readonly style?: Asset;
  /** An address to which the browser goes on by itself. */
  readonly goesTo?: string;
  /** It has a login form. */
  readonly beginsSession?: boolean;
  /** Which events update the page: those of one action, by its ID, or "all". Left out: none. */
  readonly follows?: string;
  /** The server's time, for pages that show relative times. */
  readonly now?: Date;
  readonly children?: Child;
}

/** The frame of every page. */
export function Layout(props: LayoutProps) {
  const { user = null, nav, width = "text", isStandalone = false, follows, now, children } = props;
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
            {isStandalone ? (
              <span class="brand">Outgate</span>
            ) : (
              <a class="brand" href="/">
                Outgate
              </a>
            )}
            {user === null ? null : <Navigation nav={nav} user={user} />}
          </div>
        </header>
        <main id="main" data-follows={follows} data-now={now?.toISOString()}>
          {children}
        </main>
      </body>
    </html>
  );
}

function Head({ title, user = null, isStandalone = false, beginsSession = false, style, goesTo }: LayoutProps) {
  const styles = [STYLE, APP_STYLE, ...(style === undefined ? [] : [style])];
  const scripts = [...(user === null && !beginsSession ? [] : [SESSION]), ...(user === null ? [] : [LIVE])];
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      {goesTo === undefined ? null : <meta http-equiv="refresh" content={`0; url=${goesTo}`} />}
      <title>{`${title} · Outgate`}</title>
      {isStandalone ? (
        <style>{raw(STYLE.text)}</style>
      ) : (
        styles.map(({ path }) => <link rel="stylesheet" href={path} />)
      )}
      {scripts.map(({ path }) => (
        <script type="module" src={path} />
      ))}
      <link rel="icon" type={ICON.type} href={isStandalone ? ICON_IN_PAGE : ICON.path} />
    </head>
  );
}

/** A standalone page can't load files. */
const ICON_IN_PAGE = `data:${ICON.type},${encodeURIComponent(ICON.text)}`;

function Navigation({ nav, user }: Pick<LayoutProps, "nav"> & { readonly user: PageUser }) {
  return (
    <>
      <nav aria-label="Main">
        <ul>
          {NAVIGATION.filter(({ needs }) => mayDo(user.role, needs)).map(({ name, path }) => (
            <li>
              <a href={path} aria-current={name === nav ? "page" : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <PostForm user={user} action="/auth/logout" class="person">
        {user.hasOthers ? <a href={LOG_IN_PATH}>Switch account</a> : null}
        <span title={user.email}>{user.email}</span>
        <Button look="link">Log out</Button>
      </PostForm>
    </>
  );
}

/** A person's accounts and sessions. */
export const LOG_IN_PATH = "/settings/login";

/** The main navigation, each entry for whose role allows something there. */
const NAVIGATION = [
  { name: "Overview", path: "/overview", needs: "read" },
  { name: "Approvals", path: "/approvals", needs: "read" },
  { name: "Actions", path: "/actions", needs: "read" },
  { name: "Keys", path: "/keys", needs: "manage" },
  { name: "Settings", path: "/settings", needs: "read" },
  { name: "Docs", path: "/docs", needs: "read" },
] as const;

type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

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

/** The export for people; programs have the one of the API. */
export const EXPORT_PATH = `${ACTIONS_PATH}/export`;

export function actionPath(id: string): string {
  return `${ACTIONS_PATH}/${id}`;
}

/** The page above every page of settings. */
export const SETTINGS_LINK = { href: "/settings", name: "Settings" } as const;

/** Parameters to change; undefined removes one. */
type ListChanges = { readonly [Name in keyof ListQuery]?: ListQuery[Name] | undefined };

/** The path of the list of actions with these filters and changes. */
export function listPath(query: ListQuery, changes: ListChanges = {}): string {
  return ACTIONS_PATH + queryText({ ...query, ...changes });
}

/** Parameters as the end of a path, with the question mark; empty where there are none. */
export function queryText(query: object): string {
  const pairs = Object.entries<unknown>({ ...query }).flatMap(([name, value]) => {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.flatMap((one): [string, string][] =>
      (typeof one === "string" && one !== "") || typeof one === "number" ? [[name, String(one)]] : [],
    );
  });
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? "" : `?${text}`;
}
