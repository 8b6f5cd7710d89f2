import type { AuthRouteDeps } from "./auth.ts";
import { assetRoutes } from "./assets.ts";
import { type DocsPageDeps, docsPages } from "./docs-pages.ts";
import { entryPages } from "./entry-pages.ts";
import { type InboxRouteDeps, inboxRoutes } from "./inbox.ts";
import { type KeyPageDeps, keyPages } from "./key-pages.ts";
import { type OverviewPageDeps, overviewPages } from "./overview-page.ts";
import { type SettingsPageDeps, settingsPages } from "./settings-pages.ts";
import type { Route } from "../route.ts";

export type PageDeps = AuthRouteDeps &
  InboxRouteDeps &
  KeyPageDeps &
  OverviewPageDeps &
  SettingsPageDeps &
  DocsPageDeps;

/** Every page for people but those that a token opens, and what they load. */
export function webPages(deps: PageDeps): readonly Route[] {
  return [
    ...entryPages(deps),
    ...inboxRoutes(deps),
    ...keyPages(deps),
    ...overviewPages(deps),
    ...settingsPages(deps),
    ...docsPages(deps),
    ...assetRoutes(),
  ];
}
