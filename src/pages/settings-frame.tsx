/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { FLASH_MS_MAX } from "../core/limits.ts";
import type { Pause } from "../core/pause.ts";
import { mayDo } from "../core/roles.ts";
import { EmptyState, Menu } from "../ui/controls.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { Layout, LOG_IN_PATH, PAUSES_PATH, SETTINGS_LINK } from "../ui/layout.tsx";
import { ago, Notice, PageHead, type PageHeadProps } from "../ui/parts.tsx";
import { duration, type PageUser } from "../ui/text.ts";
import { actorName } from "./timeline.tsx";

export const SETTINGS_PATHS = {
  people: "/settings/people",
  channels: "/settings/channels",
  notifications: "/settings/notifications",
  audit: "/audit",
  rules: "/settings/rules",
  grants: "/settings/grants",
  hosts: "/settings/hosts",
  credentials: "/settings/credentials",
  oauthClients: "/settings/oauth-clients",
  callbackHosts: "/settings/callback-hosts",
  pauses: PAUSES_PATH,
  signing: "/settings/signing",
  server: "/settings/server",
  accounts: "/settings/accounts",
} as const;

interface Section {
  readonly name: string;
  readonly path: string;
  readonly icon: IconName;
  readonly needs: "read" | "approve" | "manage";
}

/** The sections of the settings by subject, for people whose role allows something there. Keys are in the main navigation. */
const GROUPS = [
  {
    title: "Team",
    sections: [
      { name: "Account and login", path: LOG_IN_PATH, icon: "person", needs: "read" },
      { name: "People", path: SETTINGS_PATHS.people, icon: "people", needs: "manage" },
    ],
  },
  {
    title: "Agents",
    sections: [
      { name: "Rules", path: SETTINGS_PATHS.rules, icon: "rules", needs: "read" },
      { name: "Grants", path: SETTINGS_PATHS.grants, icon: "check", needs: "approve" },
      { name: "Credentials", path: SETTINGS_PATHS.credentials, icon: "keys", needs: "manage" },
      { name: "OAuth clients", path: SETTINGS_PATHS.oauthClients, icon: "person", needs: "manage" },
      { name: "Pauses", path: SETTINGS_PATHS.pauses, icon: "pause", needs: "manage" },
      { name: "Callback hosts", path: SETTINGS_PATHS.callbackHosts, icon: "external", needs: "manage" },
    ],
  },
  {
    title: "Delivery",
    sections: [
      { name: "Hosts", path: SETTINGS_PATHS.hosts, icon: "host", needs: "manage" },
      { name: "Signing secrets", path: SETTINGS_PATHS.signing, icon: "shield", needs: "manage" },
    ],
  },
  {
    title: "Alerts",
    sections: [
      { name: "Channels", path: SETTINGS_PATHS.channels, icon: "send", needs: "manage" },
      { name: "Notifications", path: SETTINGS_PATHS.notifications, icon: "inbox", needs: "manage" },
    ],
  },
  {
    title: "Audit",
    sections: [{ name: "Audit log", path: SETTINGS_PATHS.audit, icon: "clock", needs: "manage" }],
  },
  {
    title: "Server",
    sections: [{ name: "Server", path: SETTINGS_PATHS.server, icon: "server", needs: "manage" }],
  },
] as const satisfies readonly { readonly title: string; readonly sections: readonly Section[] }[];

export const SETTINGS_SECTIONS: readonly Section[] = GROUPS.flatMap(({ sections }): readonly Section[] => sections);

export interface SettingsPageProps extends Partial<PageHeadProps> {
  readonly user: PageUser;
  /** Also the title, if the page has no other. */
  readonly section: (typeof GROUPS)[number]["sections"][number]["name"];
  /** The window's title, if `title` is no plain text. */
  readonly windowTitle?: string;
  /** Whether this is the index of all sections. In narrow windows they replace the content. */
  readonly isIndex?: boolean;
  readonly now?: Date | undefined;
}

/** A page of the settings, with the sections on its left, or a link back to them in narrow windows. */
export function SettingsPage(props: SettingsPageProps) {
  const { user, section, title = section, windowTitle, intro, actions, back, isIndex = false, now, children } = props;
  const inWindow = windowTitle ?? (typeof title === "string" ? title : section);
  return (
    <Layout title={inWindow} nav="Settings" user={user} width="wide" now={now}>
      <div class={isIndex ? "settings settings-index" : "settings"}>
        <Sections user={user} section={section} isIndex={isIndex} />
        <div class="settings-page">
          <PageHead
            title={title}
            intro={intro}
            back={back ?? (isIndex ? undefined : { ...SETTINGS_LINK, isOnlyNarrow: true })}
            actions={actions}
          />
          {children}
        </div>
      </div>
    </Layout>
  );
}

function Sections({ user, section, isIndex }: Pick<SettingsPageProps, "user" | "section" | "isIndex">) {
  return (
    <nav class="sections" aria-label="Settings">
      {isIndex === true ? (
        // Wide windows show another title.
        <p class="sections-title only-narrow" role="heading" aria-level={1}>
          Settings
        </p>
      ) : null}
      {GROUPS.map(({ title, sections }) => {
        const shown = sections.filter(({ needs }: Section) => mayDo(user.role, needs));
        if (shown.length === 0) return null;
        return (
          <ul aria-label={title}>
            {/* A single link needs no title. */}
            {shown.length === 1 ? null : (
              <li class="sections-group" aria-hidden="true">
                {title}
              </li>
            )}
            {shown.map(({ name, path, icon }) => (
              <li>
                <a href={path} aria-current={name === section ? "page" : undefined}>
                  <Icon name={icon} />
                  {name}
                </a>
              </li>
            ))}
          </ul>
        );
      })}
    </nav>
  );
}

/**
 * A column: its head, which phones show before each value; a row's cell; and its look. Numbers align right, buttons go to the
 * end of the row, the main column is never narrow, and a wide one takes the remaining space.
 */
type Column<Row> = readonly [head: string, cell: (row: Row) => Child, as?: "number" | "buttons" | "main" | "wide"];

export interface ListProps<Row> {
  /** The title, which only screen readers get if the list has no id. */
  readonly title: string;
  readonly id?: string;
  readonly intro?: Child;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** The buttons at the end of a row. */
  readonly actions?: ((row: Row) => Child) | undefined;
  /** Shown in place of an empty list. */
  readonly empty?: { readonly icon: IconName; readonly title: string; readonly text: Child };
  readonly children?: Child;
}

/** A list in the settings: a dense table. On phones each row is a block of names and values, so nothing scrolls sideways. */
export function List<Row>(props: ListProps<Row>) {
  const { title, id, intro, rows, actions, empty } = props;
  const columns = actions === undefined ? props.columns : [...props.columns, ["", actions, "buttons"] as const];
  if (rows.length === 0 && empty !== undefined) {
    return (
      <EmptyState icon={empty.icon} title={empty.title}>
        <p>{empty.text}</p>
      </EmptyState>
    );
  }
  const table = (
    <table class="data">
      <caption class="visually-hidden">{title}</caption>
      <thead>
        <tr>
          {columns.map(([head, , as]) => (
            <th scope="col" class={as}>
              {head === "" ? <span class="visually-hidden">What you can do</span> : head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {columns.map(([head, cell, as]) => (
              <td class={as} data-label={head === "" ? undefined : head}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  if (id === undefined) return table;
  return (
    <section class="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {intro === undefined ? null : <p class="quiet">{intro}</p>}
      {table}
      {props.children}
    </section>
  );
}

interface RowActionProps {
  readonly user: PageUser;
  readonly path: string;
  readonly fields?: readonly (readonly [name: string, value: string])[];
  readonly look?: "bad" | "plain" | "main";
  readonly name: string;
  readonly of?: Child;
  /** The question that scripts ask first. */
  readonly question?: string | undefined;
}

export function RowAction({ user, path, fields = [], look = "bad", name, of, question }: RowActionProps) {
  return (
    <PostForm user={user} action={path} fields={fields}>
      <Button look={look} question={question}>
        {name}
        <OfRow of={of} />
      </Button>
    </PostForm>
  );
}

export function RowLink({ href, name, of }: Pick<RowActionProps, "name" | "of"> & { readonly href: string }) {
  return (
    <a href={href}>
      {name}
      <OfRow of={of} />
    </a>
  );
}

/** Completes a button's name with its row, for screen readers. */
export function OfRow({ of }: Pick<RowActionProps, "of">) {
  return of === undefined ? null : <span class="visually-hidden"> {of}</span>;
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

interface RowMenuProps {
  readonly of: string;
  readonly items: readonly Child[];
  /** The last item, which ends something; null for none. */
  readonly ends?: Child;
}

/** A row's further actions, behind three dots. */
export function RowMenu({ of, items, ends = null }: RowMenuProps) {
  const label = (
    <>
      <Icon name="more" />
      <span class="visually-hidden">More for {of}</span>
    </>
  );
  return (
    <span class="more-menu">
      <Menu isAtEnd label={label}>
        {items.map((item) => (
          <li>{item}</li>
        ))}
        {ends === null ? null : <li class="ends">{ends}</li>}
      </Menu>
    </span>
  );
}

/** The item of a row that can be paused. The query names the row on the page of pauses. */
export function pauseOrResume(user: PageUser, pause: Pick<Pause, "id"> | undefined, query: string, of: string) {
  if (pause === undefined) return <RowLink href={`${PAUSES_PATH}${query}`} name="Pause" of={of} />;
  return <RowAction user={user} path={`${PAUSES_PATH}/${pause.id}/resume`} look="plain" name="Resume" of={of} />;
}

/** Says when and by whom a row was added. */
export function AddedBy(props: { readonly what?: string; readonly at: Date; readonly by: string; readonly now: Date }) {
  const { what = "Added", at, by, now } = props;
  return (
    <span class="says">
      {what} {ago(at, now)} by {actorName(by)}
    </span>
  );
}

/** A name with a tag; null for no tag. */
export function Tagged({ name, tag }: { readonly name: Child; readonly tag: string | null }) {
  return (
    <>
      {name} {tag === null ? null : <span class="tag">{tag}</span>}
    </>
  );
}

/** How long ago a time was, or `none` if it is null. */
export function agoOr(at: Date | null, now: Date, none?: string) {
  return at === null ? <None>{none}</None> : ago(at, now);
}

export function None({ children = "–" }: { readonly children?: Child }) {
  return <span class="none">{children}</span>;
}
