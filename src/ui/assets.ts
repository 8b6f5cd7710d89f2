import htmx from "htmx.org/dist/htmx.min.js" with { type: "text" };
import idiomorph from "idiomorph/dist/idiomorph-ext.min.js" with { type: "text" };
import actionCss from "./styles/action.css" with { type: "text" };
import actionsCss from "./styles/actions.css" with { type: "text" };
import chartCss from "./chart.css" with { type: "text" };
import controlsCss from "./controls.css" with { type: "text" };
import dialogsCss from "./dialogs.css" with { type: "text" };
import docsCss from "./styles/docs.css" with { type: "text" };
import layoutCss from "./layout.css" with { type: "text" };
import icon from "./assets/icon.svg" with { type: "text" };
import iconWaiting from "./assets/icon-waiting.svg" with { type: "text" };
import inboxCss from "./styles/inbox.css" with { type: "text" };
import listCss from "./styles/list.css" with { type: "text" };
import overviewCss from "./styles/overview.css" with { type: "text" };
import rulesCss from "./styles/rules.css" with { type: "text" };
import schemaFormCss from "./styles/schema-form.css" with { type: "text" };
import settingsCss from "./styles/settings-frame.css" with { type: "text" };
import { SCRIPTS } from "./scripts.ts";
import { type Asset, textAsset, SHEET_PARTS, styleAsset } from "./sheet-style.ts";

export const APP_STYLE = styleAsset("app", [
  ...SHEET_PARTS,
  controlsCss,
  dialogsCss,
  layoutCss,
  inboxCss,
  actionsCss,
  actionCss,
  chartCss,
  overviewCss,
  listCss,
  schemaFormCss,
  settingsCss,
  rulesCss,
  docsCss,
]);

/** Adds live updates, keyboard, palette, copy buttons and local times. Every page works without it. */
export const CONSOLE = textAsset("console", "js", "text/javascript; charset=utf-8", SCRIPTS.console);

/** The console's libraries: htmx loads parts of pages, and idiomorph changes only what differs. */
export const LIBRARIES = [
  textAsset("htmx", "js", "text/javascript; charset=utf-8", htmx),
  textAsset("idiomorph", "js", "text/javascript; charset=utf-8", idiomorph),
] as const;

/** Adds the session secret to forms. Without it, forms ask for the password. */
export const SESSION = textAsset("session", "js", "text/javascript; charset=utf-8", SCRIPTS.session);

export const ICON = textAsset("icon", "svg", "image/svg+xml", icon.trim());

/** The icon while a request is waiting for a decision. */
export const ICON_WAITING = textAsset("icon-waiting", "svg", "image/svg+xml", iconWaiting.trim());

/** Everything that a page may load. */
export const ASSETS: readonly Asset[] = [APP_STYLE, CONSOLE, ...LIBRARIES, SESSION, ICON, ICON_WAITING];
