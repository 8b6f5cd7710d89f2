/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { APP_STYLE, type Asset, ICON, LIVE, SESSION, STYLE } from "./assets.ts";
import { Button, FormToken } from "./form.tsx";
import { NAVIGATION, type Place } from "./navigation.ts";
import type { PageUser } from "./visitor.ts";

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
            Skip the navigation
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
