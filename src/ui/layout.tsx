/** @jsxImportSource hono/jsx */
import type { Counted } from "../core/search.ts";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { HtmlEscapedString } from "hono/utils/html";
import { describeActor, mayDo } from "../core/roles.ts";
import type { ListParameters } from "../api/list-schemas.ts";
import { APP_STYLE, CONSOLE, ICON, ICON_WAITING, LIBRARIES, SESSION } from "./assets.ts";
import { SHEET_STYLE } from "./sheet-style.ts";
import { Button, PostForm } from "./form.tsx";
import { Menu, Skeleton } from "./controls.tsx";
import type { Pause } from "../core/pause.ts";
import { Icon, Logo } from "./icons.tsx";
import { sentence, time, untrusted } from "./parts.tsx";
import { type NavAccount, number, type PageUser } from "./text.ts";

interface LayoutProps {
  readonly title: string;
  /** Null or left out if nobody is logged in. Then there is no navigation. */
  readonly user?: PageUser | null;
  readonly nav?: (typeof NAVIGATION)[number]["name"] | "More" | undefined;
  /** The width of the content; "text" by default. A "full" page fills the window and lays out its own inside. */
  readonly width?: "narrow" | "text" | "wide" | "full";
  /** Whether it is a standalone page with inline style, whose CSP sandbox can't load files. */
  readonly isStandalone?: boolean;
  /** An address to redirect the browser to. */
  readonly goesTo?: string;
  readonly beginsSession?: boolean;
  /** Which events update the page: an action's id, or "all"; left out for none. */
  readonly follows?: string;
  /** The server's time, for pages that show relative times. */
  readonly now?: Date | undefined;
  readonly children?: Child;
}

export function Layout(props: LayoutProps) {
  const { user = null, nav, width = "text", isStandalone = false, follows, now, children } = props;
  const main = (
    <main id="main" data-follows={follows} data-now={now?.toISOString()}>
      {children}
    </main>
  );
  return (
    <html lang="en" class={width}>
      <Head {...props} title={`${props.title} · Outgate`} />
      {user === null ? (
        <body class="sheet">
          <header class="top">
            <Brand isLink={!isStandalone} />
          </header>
          {main}
        </body>
      ) : (
        <body class="app" hx-ext="morph">
          <a class="skip" href="#main">
            Skip to content
          </a>
          <SideBar nav={nav} user={user} />
          <div class="view">
            {/* The script shows it while no update gets through. */}
            <p id="lost" class="lost" role="status" hidden>
              Not connected to Outgate. What you see may be out of date.
            </p>
            <StopBanner user={user} />
            {main}
          </div>
          <div id="drawer" role="dialog" aria-label="Details" />
          <div class="drawer-loading">
            <Skeleton label="Loading the action" />
          </div>
          <Palette />
        </body>
      )}
    </html>
  );
}

/** The banner above every page while nothing is sent. Partial updates find it by its id. */
function StopBanner({ user }: { readonly user: PageUser }) {
  const { stop } = user;
  if (stop === undefined) return <div id="stop" />;
  const isOwn = stop.kind === "account";
  return (
    <div id="stop">
      <div class="stop between" role="status">
        <p>
          <b>{isOwn ? "Everything is paused: nothing is sent." : "This account is stopped: nothing is sent."}</b> Since{" "}
          {time(stop.createdAt)}
          {isOwn ? sentence`, by ${untrusted(describeActor(stop.createdBy).name)}` : null}.{" "}
          {stop.reason === null ? null : (
            <>
              {isOwn ? "Reason: " : ""}
              {untrusted(stop.reason)}
            </>
          )}
        </p>
        <ResumeForm user={user} pause={stop} />
      </div>
    </div>
  );
}

const RESUME_LABELS = { account: "Resume everything", key: "Resume key", host: "Resume host" } as const;

interface ResumeFormProps {
  readonly user: PageUser;
  readonly pause: Pause;
  /** The next page; by default the pauses. */
  readonly next?: string;
  readonly look?: "main" | "plain" | "link";
}

/** The button that ends a pause, for people who may. Nobody in the account can end the operator's. */
export function ResumeForm({ user, pause: { id, kind }, next, look = "plain" }: ResumeFormProps) {
  if (kind === "sign_up" || !mayDo(user.role, "manage")) return null;
  return (
    <PostForm
      user={user}
      action={`${PAUSES_PATH}/${id}/resume`}
      fields={next === undefined ? [] : [[NEXT_FIELD, next]]}
    >
      <Button look={look}>{RESUME_LABELS[kind]}</Button>
    </PostForm>
  );
}

/** The field with a form's next page, if several pages have the form. */
export const NEXT_FIELD = "next";

function Brand({ isLink }: { readonly isLink: boolean }) {
  const inside = (
    <>
      <Logo />
      Outgate
    </>
  );
  if (!isLink) return <span class="brand">{inside}</span>;
  return (
    <a class="brand" href="/">
      {inside}
    </a>
  );
}

interface HeadProps extends Pick<LayoutProps, "title" | "user" | "isStandalone" | "beginsSession" | "goesTo"> {
  /** Whether the page has live parts, as all pages behind the login do. */
  readonly hasConsole?: boolean;
}

export function Head(props: HeadProps) {
  const { title, user = null, isStandalone = false, beginsSession = false, goesTo, hasConsole = user !== null } = props;
  const hasForms = user !== null || beginsSession;
  const scripts = [...(hasForms ? [SESSION] : []), ...(hasConsole ? [CONSOLE] : [])];
  const icon = (user?.badges?.waiting.count ?? 0) === 0 ? ICON : ICON_WAITING;
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
      <meta name="color-scheme" content="light dark" />
      {goesTo === undefined ? null : <meta http-equiv="refresh" content={`0; url=${goesTo}`} />}
      <title>{title}</title>
      {isStandalone ? <style>{raw(SHEET_STYLE.text)}</style> : <link rel="stylesheet" href={APP_STYLE.path} />}
      {hasConsole ? LIBRARIES.map(({ path }) => <script defer src={path} />) : null}
      {scripts.map(({ path }) => (
        <script type="module" src={path} />
      ))}
      <link id="icon" rel="icon" type={icon.type} href={isStandalone ? ICON_IN_PAGE : icon.path} />
    </head>
  );
}

/** The icon inside a standalone page, which can't load files. */
const ICON_IN_PAGE = `data:${ICON.type},${encodeURIComponent(ICON.text)}`;

function SideBar({ nav, user }: Pick<LayoutProps, "nav"> & { readonly user: PageUser }) {
  const entries = NAVIGATION.filter(({ needs }) => mayDo(user.role, needs));
  return (
    <aside id="side" class="side">
      <Brand isLink />
      <AccountMenu user={user} accounts={user.accounts ?? []} />
      <a class="button button-plain search-open" href={ACTIONS_PATH} data-open="palette">
        <Icon name="search" />
        Search
        <kbd>Ctrl K</kbd>
      </a>
      <nav id="navigation" aria-label="Main">
        <ul class="tabs-bottom">
          {entries.map(({ name, path, icon, isRare }) => (
            <li class={isRare ? "rare" : undefined}>
              <a href={path} aria-current={name === nav ? "page" : undefined}>
                <Icon name={icon} />
                {name}
                <NavBadge name={name} badges={user.badges} />
              </a>
            </li>
          ))}
          <li class="tabs-more">
            <a
              href={MORE_PATH}
              aria-current={
                nav === "More" || entries.some(({ name, isRare }) => isRare && name === nav) ? "page" : undefined
              }
            >
              <Icon name="more" />
              More
            </a>
          </li>
        </ul>
      </nav>
      <Menu
        panel="person-menu"
        label={
          <>
            <Icon name="person" />
            <span title={user.email}>{user.email}</span>
          </>
        }
      >
        <a href={LOG_IN_PATH}>Login and sessions</a>
        <PostForm user={user} action="/auth/logout">
          <Button look="link">Log out</Button>
        </PostForm>
      </Menu>
    </aside>
  );
}

/** The shown account, the person's others, and the link that pauses everything. */
function AccountMenu({ user, accounts }: { readonly user: PageUser; readonly accounts: readonly NavAccount[] }) {
  const current = accounts.find(({ isCurrent }) => isCurrent);
  const mayPause = mayDo(user.role, "manage");
  if (accounts.length < 2 && !mayPause) {
    return current === undefined ? null : <p class="account-name">{accountName(current)}</p>;
  }
  return (
    <Menu panel="account-menu" label={<span>{current === undefined ? "Account" : accountName(current)}</span>}>
      {accounts
        .filter(({ isCurrent }) => !isCurrent)
        .map((account) => (
          <PostForm user={user} action={`${LOG_IN_PATH}/account`} fields={[["account", account.accountId]]}>
            <Button look="link">{accountName(account)}</Button>
          </PostForm>
        ))}
      <a href={LOG_IN_PATH}>{accounts.length < 2 ? "Account and login" : "All accounts"}</a>
      {mayPause && user.stop !== undefined ? <ResumeForm user={user} pause={user.stop} look="link" /> : null}
      {mayPause && user.stop === undefined ? (
        <a class="brake" href={PAUSE_EVERYTHING.path}>
          {PAUSE_EVERYTHING.name}
        </a>
      ) : null}
    </Menu>
  );
}

function accountName({ name, email }: NavAccount): Child {
  if (name !== null) return untrusted(name);
  return email === null ? "Account" : untrusted(`Account of ${email}`);
}

function NavBadge({ name, badges }: { readonly name: string; readonly badges: PageUser["badges"] }) {
  if (badges === undefined) return null;
  const [counted, look, what] =
    name === "Approvals"
      ? ([badges.waiting, "wait", "awaiting approval"] as const)
      : ([badges.failing, "bad", "failed in the last day"] as const);
  if ((name !== "Approvals" && name !== "Actions") || counted.count === 0) return null;
  return (
    <span class={`badge badge-${look}`} title={`${amountText(counted)} ${what}`}>
      {amountText(counted)}
      <span class="visually-hidden"> {what}</span>
    </span>
  );
}

export function amountText({ count, isMore }: Counted): string {
  return `${number(count)}${isMore ? "+" : ""}`;
}

/** Finds pages and actions as people type. Without script, a link to the list, which has a search. */
function Palette() {
  return (
    <dialog id="palette" class="palette" aria-label="Search and go to">
      <input
        id="palette-text"
        name="q"
        type="search"
        aria-label="Go to a page, find an action, pause a host"
        placeholder="Go to a page, find an action, pause a host …"
        autocomplete="off"
        role="combobox"
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls="found"
        hx-get={PALETTE_PATH}
        hx-trigger="input changed delay:120ms, palette"
        hx-target="#found"
        hx-swap="outerHTML"
        hx-sync="this:replace"
      />
      <div id="found" role="listbox" aria-label="Results" />
      <Skeleton label="Searching" />
    </dialog>
  );
}

/** The path of the palette's results. */
export const PALETTE_PATH = "/palette";

/** The path of everything that the four tabs on phones leave out. */
export const MORE_PATH = "/more";

export const LOG_IN_PATH = "/settings/login";

export const PAUSES_PATH = "/settings/pauses";

/** The page that asks for confirmation and a reason before it pauses the account. */
export const PAUSE_EVERYTHING = { name: "Pause everything", path: `${PAUSES_PATH}?scope=account#add` } as const;

/** The main navigation. Shows each entry to people whose role allows something there. On phones, rare ones are behind "More". */
export const NAVIGATION = [
  { name: "Approvals", path: "/approvals", needs: "read", icon: "approvals", isRare: false },
  { name: "Actions", path: "/actions", needs: "read", icon: "actions", isRare: false },
  { name: "Overview", path: "/overview", needs: "read", icon: "overview", isRare: false },
  { name: "Keys", path: "/keys", needs: "manage", icon: "keys", isRare: true },
  { name: "Settings", path: "/settings", needs: "read", icon: "settings", isRare: true },
  { name: "Docs", path: "/docs", needs: "read", icon: "docs", isRare: true },
] as const;

type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Renders a page as HTML. Throws if a part is asynchronous, so read all data before. */
export function render(page: Html): string {
  return `<!doctype html>${renderPart(page)}`;
}

export function renderPart(part: Html): string {
  if (part instanceof Promise) throw new Error("A page is made of data that is there.");
  const text: unknown = part.toString();
  if (typeof text !== "string") throw new Error("A part of a page is made of data that is there.");
  return text;
}

export const OVERVIEW_PATH = "/overview";

/** The form that hides the first steps. */
export const FIRST_STEPS_PATH = `${OVERVIEW_PATH}/first-steps`;

export const ACTIONS_PATH = "/actions";

/** The path of the export for people. Programs use the API's. */
export const EXPORT_PATH = `${ACTIONS_PATH}/export`;

export function actionPath(id: string): string {
  return `${ACTIONS_PATH}/${id}`;
}

export const BULK_PATH = "/bulk";

export function bulkPath(id: string): string {
  return `${BULK_PATH}/${id}`;
}

export const SETTINGS_LINK = { href: "/settings", name: "Settings" } as const;

/** Parameters to change; undefined removes one. */
type ListChanges = { readonly [Name in keyof ListParameters]?: ListParameters[Name] | undefined };

/** The path of the list of actions with these filters and changes. */
export function listPath(query: ListParameters, changes: ListChanges = {}): string {
  return ACTIONS_PATH + queryText({ ...query, ...changes });
}

/** Parameters as the end of a path, with the question mark; empty without parameters. */
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
