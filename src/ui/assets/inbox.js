/**
 * The request that a person decides on. Its decision stays in view, so this script says how much of the request is below
 * what the person has seen. Part of `console.js`, after it.
 */
{
  /** Requests whose end was in view, as "id run". @type {Set<string>} */
  const seen = new Set();
  const LINE_PX = 20;
  let isQueued = false;

  /** In a confirmation, too: it is of the same request. */
  const look = () => {
    isQueued = false;
    const dialog = document.querySelector("dialog[data-shown]");
    for (const request of [dialog, shownRequest()]) if (request instanceof HTMLElement) tell(request);
  };
  const foldedIn = (/** @type {Element} */ request) =>
    [...request.querySelectorAll(".json-fold:not([open]), .json-more")]
      .filter((fold) => fold.parentElement?.closest("details:not([open])") === null)
      .reduce((sum, fold) => sum + Number(fold.getAttribute("data-folded")), 0);
  const tell = (/** @type {HTMLElement} */ request) => {
    const end = request.querySelector("[data-end]");
    const bar = request.querySelector("form.decide, .buttons:last-child");
    if (!(end instanceof HTMLElement) || !(bar instanceof HTMLElement)) return;
    // A pane that a phone doesn't show has no size.
    if (bar.offsetHeight === 0) return;
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
      const told = button === null ? text : why;
      if (!place.hasAttribute("hidden") && place.textContent !== told) place.textContent = told;
    }
  };
  const queue = () => {
    if (!isQueued) requestAnimationFrame(look);
    isQueued = true;
  };
  // Scrolling and opening don't bubble.
  for (const type of ["scroll", "toggle"]) addEventListener(type, queue, { capture: true, passive: true });
  for (const type of ["resize", "htmx:afterSettle", "request:shown"]) addEventListener(type, queue);
  look();

  addEventListener("click", (event) => {
    const { target } = event;
    if (!(target instanceof Element) || target.closest("[data-below-link]") === null) return;
    // The address stays that of the request.
    event.preventDefault();
    const end = target.closest("[data-shown]")?.querySelector("[data-end]");
    end?.scrollIntoView({ block: "center", behavior: "smooth" });
  });

  // What was loaded is below what was seen.
  addEventListener("htmx:beforeSwap", (event) => {
    const { target } = /** @type {CustomEvent} */ (event).detail;
    if (!target.matches(".json-more, .body-view")) return;
    seen.delete(target.closest("[data-shown]")?.dataset.shown ?? "");
  });

  // A disabled button would not say why: it keeps its focus and its text, and only does nothing. An update of the page may
  // have put its attribute back, so what was seen counts.
  for (const type of ["click", "submit", "request:decides"]) {
    addEventListener(
      type,
      (event) => {
        const pressed = event instanceof SubmitEvent ? event.submitter : event.target;
        const button = pressed instanceof Element ? pressed.closest("[data-waits]") : null;
        const request = button?.closest("[data-shown]");
        if (!(request instanceof HTMLElement)) return;
        const isUnread = foldedIn(request) > 0 || request.querySelector(".body-more") !== null;
        if (isUnread || !seen.has(request.dataset["shown"] ?? "")) event.preventDefault();
      },
      { capture: true },
    );
  }

  // Nobody has to click into the review before its keys scroll it.
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    if ((key !== "End" && key !== " ") || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (!(target instanceof Element) || target.closest("dialog, input, textarea, select, button, a, summary")) return;
    const pane = document.getElementById("review")?.closest(".inbox-pane");
    if (pane === undefined || pane === null || pane.scrollHeight <= pane.clientHeight) return;
    event.preventDefault();
    const by = key === "End" ? pane.scrollHeight : pane.clientHeight * 0.9;
    pane.scrollBy({ top: event.shiftKey ? -by : by });
  });

  // The page without a request in its address shows the next one: under its own address no update can exchange it for
  // another while somebody reads it.
  const keepAddress = () => {
    const inbox = document.getElementById("inbox");
    const path = inbox?.dataset["openPath"];
    const pane = document.getElementById("request");
    if (path === undefined || location.pathname !== "/approvals" || pane === null || pane.offsetHeight === 0) return;
    const decided = new URLSearchParams(location.search).get("decided");
    const own = new URL(path, location.href);
    if (decided !== null) own.searchParams.set("decided", decided);
    history.replaceState(history.state, "", own);
  };
  keepAddress();
  // A phone that is turned may show a pane that it did not show before.
  for (const type of ["htmx:afterSettle", "resize"]) addEventListener(type, keepAddress);

  // After a decision the next request has its button where the last one had it: a second click is no decision on it.
  const SECOND_CLICK_MS = 700;
  const shownMs = performance.now();
  const isNext = new URLSearchParams(location.search).has("decided");
  addEventListener(
    "submit",
    (event) => {
      const isDecision = event.target instanceof Element && event.target.matches("form.decide");
      if (isNext && isDecision && performance.now() - shownMs < SECOND_CLICK_MS) event.preventDefault();
    },
    { capture: true },
  );

  /** How many requests are selected. */
  const tellSelected = () => {
    const count = document.querySelectorAll("#waiting input:checked").length;
    for (const place of document.querySelectorAll("[data-selected]")) place.textContent = `${count} selected`;
  };
  addEventListener("change", tellSelected);
  tellSelected();
}
