import { PAGE_STREAM_BEATS_MAX } from "../../domain/limits.ts";
import { createStreamEvents, type EventsDeps } from "../events.ts";
import type { Route } from "../route.ts";
import { type AccountsPageDeps, accountsPages } from "./accounts.ts";
import { type ActionListRouteDeps, actionListRoutes } from "./action-list.ts";
import { type ActionPageRouteDeps, actionPageRoutes } from "./action-page.ts";
import type { AuthRouteDeps } from "./auth.ts";
import { type AuditPageDeps, auditPages } from "./audit-page.ts";
import { assetRoutes } from "./assets.ts";
import { type DocsPageDeps, docsPages } from "./docs-pages.ts";
import { entryPages } from "./entry-pages.ts";
import { type InboxRouteDeps, inboxRoutes } from "./inbox.ts";
import { type KeyPageDeps, keyPages } from "./key-pages.ts";
import { type OverviewPageDeps, overviewPages } from "./overview-page.ts";
import { type PageEventRouteDeps, pageEventRoutes, pageEventsOf } from "./page-events.ts";
import { type PausePageDeps, pausePages } from "./pause-pages.ts";
import { type PasswordPageDeps, passwordPages } from "./password-page.ts";
import { type SettingsPageDeps, settingsPages } from "./settings-pages.ts";

export type PageDeps = AuthRouteDeps &
  InboxRouteDeps &
  ActionListRouteDeps &
  ActionPageRouteDeps &
  PageEventRouteDeps &
  Omit<EventsDeps, "show"> &
  KeyPageDeps &
  PausePageDeps &
  AccountsPageDeps &
  AuditPageDeps &
  OverviewPageDeps &
  SettingsPageDeps &
  PasswordPageDeps &
  DocsPageDeps;

/** Every page for people but those that a token opens, and what they load. */
export function webPages(deps: PageDeps): readonly Route[] {
  return [
    ...entryPages(deps),
    ...inboxRoutes(deps),
    ...actionListRoutes(deps),
    ...actionPageRoutes(deps),
    ...pageEventRoutes(deps, createStreamEvents({ ...deps, show: pageEventsOf, beatsMax: PAGE_STREAM_BEATS_MAX })),
    ...keyPages(deps),
    ...pausePages(deps),
    ...accountsPages(deps),
    ...auditPages(deps),
    ...overviewPages(deps),
    ...settingsPages(deps),
    ...passwordPages(deps),
    ...docsPages(deps),
    ...assetRoutes(),
  ];
}
