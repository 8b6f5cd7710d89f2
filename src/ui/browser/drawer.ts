import { focus, mainPart, make } from "./elements.ts";

/** The list under the open drawer. */
interface Below {
  readonly address: string;
  readonly title: string;
  opener: Element | null;
  /** How many history entries back the list is. */
  depth: number;
}

/** Shows the page of a row on top of its list. `below` is null while it is closed. */
export const drawer: { readonly element: HTMLElement | null; below: Below | null } = {
  element: document.getElementById("drawer"),
  below: null,
};

/** How many requests are loading now, in the pane or the drawer. */
let openings = 0;

/** Whether another request is loading: then the chosen row is not the shown one. */
export function isOpening(): boolean {
  return openings > 0;
}

/** The request that people decide on: the one in the open drawer, or else on the page. */
export function shownRequest(): HTMLElement | null {
  return (
    (drawer.below === null ? mainPart() : drawer.element)?.querySelector<HTMLElement>(".request[data-shown]") ?? null
  );
}

/** Marks the places that a person is waiting for as loading. */
export function showLoading(): void {
  addEventListener("htmx:beforeRequest", (event) => {
    const { target, pathInfo } = event.detail;
    if (!target.matches("#request, #drawer, #found")) return;
    if (target === drawer.element && matchMedia("(max-width: 48rem)").matches) {
      // Phones have no room for a list beside it.
      event.preventDefault();
      location.assign(pathInfo.finalRequestPath ?? pathInfo.requestPath);
      return;
    }
    if (target.id === "request") target.scrollTop = 0;
    target.classList.add("is-loading");
    if (target.id !== "found") openings += 1;
  });
  addEventListener("htmx:afterRequest", ({ detail: { target } }) => {
    if (!target.matches("#request, #drawer, #found")) return;
    target.classList.remove("is-loading");
    if (target.id !== "found") openings -= 1;
  });
  // Marks the shown row as chosen again.
  addEventListener("htmx:sendError", ({ detail: { target } }) => {
    if (target.id === "request") focus(document.querySelector("#waiting [aria-current]"));
  });
}

/** Opens and closes the drawer when htmx loads it and when people go through the history. `refresh` reloads the list. */
export function openDrawers(refresh: () => Promise<void>): void {
  addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr, pathInfo, requestConfig } = event.detail;
    const { element } = drawer;
    if ((target === element || target.id === "request") && xhr.status >= 400) {
      location.assign(pathInfo.requestPath);
      return;
    }
    if (element === null || target !== element || event.defaultPrevented) return;
    element.dataset["isOpen"] = String(drawer.below !== null);
    drawer.below ??= { address: location.href, title: document.title, opener: null, depth: 0 };
    drawer.below.opener?.removeAttribute("aria-current");
    drawer.below.opener = requestConfig.elt;
    requestConfig.elt.setAttribute("aria-current", "true");
  });

  // Uses one history entry for any number of rows, so that going back leads to the list.
  addEventListener("htmx:beforeHistoryUpdate", ({ detail: { target, history: update } }) => {
    const { element } = drawer;
    if (element !== null && target === element && element.dataset["isOpen"] === "true") update.type = "replace";
  });

  addEventListener("htmx:afterSwap", ({ detail: { target, requestConfig } }) => {
    if (drawer.element !== null && target === drawer.element) addBar(drawer.element);
    // The person reads it next, and the list may be gone. A row that `j` and `k` pressed keeps the focus.
    if (target.id === "request" && requestConfig.triggeringEvent.isTrusted) focus(document.getElementById("request"));
  });

  // After a part that htmx opened under its own address, going back loads the whole page, unless it is the list under the
  // drawer. A link to a place on the same page keeps the address.
  const present = () => location.pathname + location.search;
  let shown = present();
  addEventListener("htmx:replacedInHistory", () => (shown = present()));
  addEventListener("htmx:pushedIntoHistory", () => {
    shown = present();
    if (drawer.below !== null) drawer.below.depth += 1;
  });
  addEventListener("popstate", (event) => {
    const { below, element } = drawer;
    if (below === null || location.href !== below.address) {
      if (present() !== shown) location.reload();
      return;
    }
    // Keeps htmx from loading it again.
    event.stopImmediatePropagation();
    drawer.below = null;
    below.opener?.removeAttribute("aria-current");
    shown = present();
    element?.replaceChildren();
    document.title = below.title;
    if (below.opener instanceof HTMLElement) below.opener.focus();
    // The list may have changed meanwhile.
    refresh().catch(() => {});
  });
}

function addBar(element: HTMLElement): void {
  // Shows a page without such a part as a whole.
  if (element.childElementCount === 0) {
    location.reload();
    return;
  }
  const whole = make("a", "Open as page");
  whole.className = "button button-plain";
  whole.setAttribute("href", location.href);
  const close = make("button", "Close");
  close.className = "button-plain";
  close.addEventListener("click", closeDrawer);
  const bar = make("div", whole, close);
  bar.className = "buttons drawer-bar";
  element.prepend(bar);
  element.scrollTop = 0;
  close.focus();
}

export function closeDrawer(): void {
  // Goes back to the list's history entry: see `popstate`.
  if (drawer.below !== null) history.go(-drawer.below.depth);
}

/** Keeps the Tab key in an open drawer. */
export function keepInDrawer(event: KeyboardEvent): void {
  const { element, below } = drawer;
  if (element === null || below === null) return;
  const stops = [
    ...element.querySelectorAll("a[href], button, input, textarea, select, summary, [tabindex='0']"),
  ].filter(
    (stop) => stop instanceof HTMLElement && stop.checkVisibility() && !stop.matches(":disabled, [type=hidden]"),
  );
  const at = stops.findIndex((stop) => stop === document.activeElement);
  const end = event.shiftKey ? 0 : stops.length - 1;
  if (at !== -1 && at !== end) return;
  event.preventDefault();
  focus(stops.at(event.shiftKey ? -1 : 0));
}
