import { shownRequest } from "./drawer.ts";
import { onClick } from "./elements.ts";

/**
 * Tells a person who decides on a request how much of it is below the part they have seen, since the decision stays in
 * view.
 */
const LINE_PX = 20;

/** Requests whose end was in view, each as "id run". */
const seen = new Set<string>();
let isQueued = false;

export function watchRequest(): void {
  // Scroll and toggle events don't bubble.
  for (const type of ["scroll", "toggle"]) addEventListener(type, lookSoon, { capture: true, passive: true });
  for (const type of ["resize", "htmx:afterSettle"]) addEventListener(type, lookSoon);
  // Now the decision stays in view. Before, it was at the end, which would have counted as seen.
  document.documentElement.dataset["ready"] = "";
  look();
  leadToEnd();
  holdUnread();
  scrollByKeys();
  keepAddress();
  // Turning a phone may show a hidden pane.
  for (const type of ["htmx:afterSettle", "resize"]) addEventListener(type, keepAddress);
}

/** Updates the text in the next frame. */
export function lookSoon(): void {
  if (!isQueued) requestAnimationFrame(look);
  isQueued = true;
}

/** Updates the text, also in a confirmation, which shows the same request. */
function look(): void {
  isQueued = false;
  const dialog = document.querySelector<HTMLElement>("dialog[data-shown]");
  for (const request of [dialog, shownRequest()]) if (request !== null) showRest(request);
}

function showRest(request: HTMLElement): void {
  const end = request.querySelector("[data-end]");
  // Hidden values have their own button above.
  const bar =
    request.querySelector<HTMLElement>("form.decide") ?? request.querySelector<HTMLElement>(".buttons:last-child");
  // A pane that a phone hides has no size.
  if (end === null || bar === null || bar.offsetHeight === 0) return;
  const folded = foldedIn(request);
  for (const place of folded === 0 ? [] : bar.querySelectorAll(".decide-folded")) {
    const text = `, with ${folded.toLocaleString("en-GB")} folded`;
    if (place.textContent !== text) place.textContent = text;
  }
  const name = request.dataset["shown"] ?? "";
  const hiddenPx = end.getBoundingClientRect().top - bar.getBoundingClientRect().top;
  if (hiddenPx <= 1) seen.add(name);
  const lines = Math.ceil(hiddenPx / LINE_PX);
  const words = `${lines} more ${lines === 1 ? "line" : "lines"} below`;
  const isSeen = seen.has(name);
  const button = bar.querySelector("[data-waits]");
  const isCut = request.querySelector(".body-more") !== null;
  const waits = button !== null && (!isSeen || folded > 0 || isCut);
  button?.setAttribute("aria-disabled", String(waits));
  const unfold = isCut ? "View the whole body first" : `Open what is folded first: ${folded.toLocaleString("en-GB")}`;
  const why = isSeen ? unfold : `Read to the end first: ${words}`;
  for (const place of bar.querySelectorAll("[data-below], [data-below-link]")) {
    place.toggleAttribute("hidden", isSeen && !waits);
    const text = place.matches("a") ? `↓ ${words}` : `, ${words}`;
    const shown = button === null ? text : why;
    if (!place.hasAttribute("hidden") && place.textContent !== shown) place.textContent = shown;
  }
}

function foldedIn(request: Element): number {
  return [...request.querySelectorAll(".json-fold:not([open]), .json-more")]
    .filter((fold) => fold.parentElement?.closest("details:not([open])") === null)
    .reduce((sum, fold) => sum + Number(fold.getAttribute("data-folded")), 0);
}

function leadToEnd(): void {
  onClick("[data-below-link]", (link, event) => {
    // Keeps the request's address.
    event.preventDefault();
    link.closest("[data-shown]")?.querySelector("[data-end]")?.scrollIntoView({ block: "center" });
  });

  // Loaded parts are below the part seen.
  addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    if (!target.matches(".body-view")) return;
    seen.delete(target.closest<HTMLElement>("[data-shown]")?.dataset["shown"] ?? "");
  });
}

/**
 * Makes the button do nothing instead of disabling it, so that it keeps its focus and its text, which says why. Relies on what
 * was seen, since an update of the page may reset the button's attribute.
 */
function holdUnread(): void {
  for (const type of ["click", "submit"]) {
    addEventListener(
      type,
      (event) => {
        const pressed = event instanceof SubmitEvent ? event.submitter : event.target;
        if (pressed instanceof Element && !isRead(pressed)) event.preventDefault();
      },
      { capture: true },
    );
  }
}

/** False for a button whose request must first be read to the end, and for elements in it. */
export function isRead(pressed: Element): boolean {
  const request = pressed.closest("[data-waits]")?.closest<HTMLElement>("[data-shown]") ?? null;
  if (request === null) return true;
  const isFolded = foldedIn(request) > 0 || request.querySelector(".body-more") !== null;
  return !isFolded && seen.has(request.dataset["shown"] ?? "");
}

/** Lets keys scroll the review without a click into it. */
function scrollByKeys(): void {
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    if ((key !== "End" && key !== " ") || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (!(target instanceof Element) || target.closest("dialog, input, textarea, select, button, a, summary")) return;
    const pane = document.getElementById("review")?.closest(".inbox-pane") ?? null;
    if (pane === null || pane.scrollHeight <= pane.clientHeight) return;
    event.preventDefault();
    const by = key === "End" ? pane.scrollHeight : pane.clientHeight * 0.9;
    pane.scrollBy({ top: event.shiftKey ? -by : by });
  });
}

/**
 * Gives the shown request its own address. A page without one shows the next request, which an update could replace while
 * somebody reads it.
 */
function keepAddress(): void {
  const path = document.getElementById("inbox")?.dataset["openPath"];
  const pane = document.getElementById("request");
  if (path === undefined || location.pathname !== "/approvals" || pane === null || pane.offsetHeight === 0) return;
  const decided = new URLSearchParams(location.search).get("decided");
  const own = new URL(path, location.href);
  if (decided !== null) own.searchParams.set("decided", decided);
  history.replaceState(history.state, "", own);
}
