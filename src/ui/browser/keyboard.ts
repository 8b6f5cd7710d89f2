import { confirm, openDialog } from "./dialogs.ts";
import { closeDrawer, drawer, isOpening, keepInDrawer, shownRequest } from "./drawer.ts";
import { focus, make } from "./elements.ts";
import { hasInput } from "./morph.ts";
import { openPalette } from "./palette.ts";
import { isRead, lookSoon } from "./review.ts";

const isMac = /^(?:Mac|iP)/.test(navigator.platform);

const KEYS = [
  [isMac ? "⌘K" : "Ctrl K", "Go to a page, find an action"],
  ["/", "Search"],
  ["j, k", "Next, previous"],
  ["Enter", "Open"],
  ["a", "Approve, after a confirmation"],
  ["x", "Cancel, after a confirmation"],
  ["r", "Retry or reject, after a confirmation"],
  ["?", "This help"],
] as const;

/** Handles keyboard shortcuts. The ones that decide ask for confirmation. */
export function readKeys(): void {
  addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      openPalette();
    } else if (key === "Escape") closeTop();
    else if (key === "Tab" && document.querySelector("dialog[open]") === null) keepInDrawer(event);
    else if (event.ctrlKey || event.altKey || event.metaKey || (event.repeat && !"jk".includes(key))) return;
    else if (
      target instanceof Element &&
      target.closest("input:not([type=checkbox]), textarea, select, dialog") !== null
    )
      return;
    else if (press(key)) event.preventDefault();
  });
}

/** Shows the key of the palette that this machine has. */
export function nameKeys(place: ParentNode): void {
  if (isMac) for (const key of place.querySelectorAll("[data-open=palette] kbd")) key.textContent = "⌘K";
}

/** Closes the open menu, or else the drawer unless it contains typed text. Dialogs close themselves. */
function closeTop(): void {
  const menu = document.querySelector("details.menu[open]");
  if (menu !== null) {
    menu.removeAttribute("open");
    menu.querySelector("summary")?.focus();
  } else if (document.querySelector("dialog[open]") === null && !hasInput(drawer.element ?? document.body))
    closeDrawer();
}

/** Returns whether the key did something. */
function press(key: string): boolean {
  if (key === "/") return focus(document.getElementById("search")) || openPalette();
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  if (key === "?") return showKeys();
  return ["a", "x", "r"].includes(key) && decide(key);
}

function showKeys(): boolean {
  const rows = KEYS.flatMap(([key, what]) => [make("dt", make("kbd", key)), make("dd", what)]);
  openDialog(make("h2", "Keyboard shortcuts"), make("dl", ...rows), make("div", make("button", "Close")));
  return true;
}

function move(by: number): boolean {
  const items = [...document.querySelectorAll<HTMLElement>("[data-item], .row-link")];
  const at = items.findIndex((item) => item.closest("li, tr")?.contains(document.activeElement));
  const from = at === -1 ? items.findIndex((item) => item.matches("[aria-current]")) : at;
  const next = items[from === -1 && by < 0 ? items.length - 1 : Math.min(Math.max(from + by, 0), items.length - 1)];
  const { below } = drawer;
  const isOpened = below === null ? next?.matches("[data-opens]:not([aria-current])") : next !== below.opener;
  // Opens its fold: folded, it could not have the focus, and the chosen request would not be the open one.
  next?.closest("details")?.setAttribute("open", "");
  if (isOpened === true) next?.click();
  return focus(next);
}

/** Decides on the open request, the focused item or the page's only action. In the list of actions, opens the action. */
function decide(key: string): boolean {
  if (isOpening()) return true;
  const open = shownRequest();
  const decision = open?.querySelector<HTMLButtonElement>(`button[data-key="${key}"]`) ?? null;
  if (decision !== null && !isRead(decision)) return focus(decision);
  if (decision?.disabled === false) {
    const dialog = confirm(decision, open?.querySelectorAll("[data-asked]:not([data-asked] *)") ?? []);
    dialog.dataset["shown"] = open?.dataset["shown"] ?? "";
    lookSoon();
    return true;
  }
  const { below, element } = drawer;
  // While a drawer is open, keys decide only on what it shows.
  const items = below === null ? [...document.querySelectorAll("[data-item], .row-link")] : [];
  const item = document.activeElement?.closest("li, tr") ?? (items.length === 1 ? items[0]?.closest("li, tr") : null);
  const whole = below === null ? document : element;
  const place = items.length === 0 ? whole : item;
  const button = place?.querySelector<HTMLButtonElement>(`button[data-key="${key}"]`);
  if (button?.disabled === false) {
    confirm(button, place?.querySelectorAll("[data-asked]") ?? []);
    return true;
  }
  const link = item?.querySelector<HTMLAnchorElement>("a.row-link") ?? null;
  if (link !== null) location.assign(link.href);
  return link !== null;
}
