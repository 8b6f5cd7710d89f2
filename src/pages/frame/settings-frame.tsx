/** @jsxImportSource hono/jsx */
import { mayDo } from "../../core/roles.ts";
import { Icon, type IconName } from "../../ui/icons.tsx";
import { Layout, LOG_IN_PATH, PAUSES_PATH, SETTINGS_LINK } from "../../ui/layout.tsx";
import { PageHead, type PageHeadProps } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";

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

/** The form of a rule, filled with a template. */
export function templatePath(name: string): string {
  return `${SETTINGS_PATHS.rules}/new?template=${name}`;
}

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
  /** The title of the window, if it is not `title`. */
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
