/**
 * Live updates, keyboard, palette, copy buttons and local times. Every page works without it. Only the server writes HTML:
 * htmx loads a page or a part of it, and idiomorph changes only what differs.
 */
const STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];
/** The shortest time between two updates. */
const PAUSE_MS = 1_000;
/** Polling interval without a stream. */
const POLL_MS = 5_000;
const COME_BACK_MS = 10_000;
const AGES_MS = 20_000;
const TOLD_MS = 2_000;

const { htmx, Idiomorph } = /** @type {any} */ (globalThis);
const mainOf = () => document.getElementById("main");
const follows = mainOf()?.dataset["follows"];
/** The difference between this clock and the server's. */
const aheadMs = Date.now() - Date.parse(mainOf()?.dataset["now"] ?? "");
const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* What a person has typed, chosen or opened stays through an update. */

/** Whether a part has focus or input that would be lost. */
function isTouched(/** @type {Element} */ part) {
  const inputs = [
    ...part.querySelectorAll(
      "input:not([type=hidden], [type=checkbox], [type=radio], [type=search]), textarea, select",
    ),
  ];
  const isChanged = inputs.some((input) => input.value !== input.defaultValue && input.defaultValue !== undefined);
  return isChanged || inputs.includes(document.activeElement);
}

Object.assign(Idiomorph.defaults.callbacks, {
  beforeNodeMorphed: (/** @type {Node} */ old, /** @type {Node} */ next) =>
    !(old instanceof HTMLFormElement && isTouched(old)) && !isLoadedPart(old, next),
  beforeNodeRemoved: (/** @type {Node} */ old) => !(old instanceof Element) || !keepsInput(old),
  // The server sends everything closed and nothing chosen. Hidden fields say what a form is for: they go with what is shown.
  beforeAttributeUpdated: (/** @type {string} */ name, /** @type {Element} */ element) => {
    if (name === "aria-current" && element === below?.opener) return false;
    if (name === "open") return !element.matches("details, dialog");
    return !((name === "checked" || name === "value") && element.matches("input:not([type=hidden]), textarea, select"));
  },
});
Idiomorph.defaults.ignoreActiveValue = true;

/** A part of a body that somebody loaded stays: the server sends the link to it again. It never changes, its id is the action's. */
function isLoadedPart(/** @type {Node} */ old, /** @type {Node} */ next) {
  if (!(old instanceof Element && next instanceof Element) || old.id !== next.id) return false;
  return old.matches(".json-part, .body-whole") && !next.matches(".json-part, .body-whole");
}

/** What is gone but has input stays, with a note, and can't be sent any more. */
function keepsInput(/** @type {Element} */ part) {
  if (!isTouched(part)) return false;
  markGone(part);
  return true;
}

function markGone(/** @type {ParentNode} */ part) {
  for (const note of part.querySelectorAll("[data-gone]")) note.removeAttribute("hidden");
  for (const button of part.querySelectorAll("form[method=post] button")) button.setAttribute("disabled", "");
}

/* Updates of the page. */

let isLoading = false;
let isOutdated = false;

/** Loads the page again, and once more if an event arrives meanwhile. */
async function refresh() {
  isOutdated = true;
  if (isLoading) return;
  isLoading = true;
  try {
    while (isOutdated) {
      isOutdated = false;
      await load();
      await wait(PAUSE_MS);
    }
  } catch {
    // The service is unreachable. Polling tries again.
  } finally {
    isLoading = false;
  }
}

/** The address of what #main shows. */
const mainAddress = () => below?.address ?? location.href;

async function load() {
  if (below !== null) {
    await htmx.ajax("GET", location.href, {
      source: "#drawer",
      target: "#action",
      select: "#action",
      swap: "morph:outerHTML",
    });
  }
  await htmx.ajax("GET", mainAddress(), {
    source: "#main",
    target: "#main",
    select: "#main",
    selectOOB: "#navigation:morph:outerHTML,#stop:morph:outerHTML,#icon:outerHTML",
    swap: "morph:outerHTML",
  });
}

addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = /** @type {CustomEvent} */ (event).detail;
  const asked = new URL(requestConfig.path, location.href);
  const { id } = requestConfig.elt;
  const present = new URL(id === "main" ? mainAddress() : location.href);
  const isLeft = asked.pathname !== present.pathname || asked.search !== present.search;
  if ((id === "main" || id === "drawer") && isLeft) {
    // An update for what somebody has left meanwhile: it would put the earlier request in the place of the one they opened.
    event.preventDefault();
    isOutdated = true;
    return;
  }
  const answered = new URL(xhr.responseURL || asked, location.href);
  if (asked.pathname === answered.pathname) return;
  // The session has ended, or the action is decided.
  event.preventDefault();
  if (isTouched(document.body)) markGone(document.body);
  else location.assign(answered);
});

addEventListener("htmx:afterSwap", () => prepare(document));

/* What loads into a place that a person waits for. */

/** How many requests are opened at the moment, in the pane or the drawer. */
let openings = 0;

addEventListener("htmx:beforeRequest", (event) => {
  const { target, pathInfo } = /** @type {CustomEvent} */ (event).detail;
  if (!target.matches("#request, #drawer, #found")) return;
  if (target === drawer && matchMedia("(max-width: 48rem)").matches) {
    // A phone has no room for a list beside it.
    event.preventDefault();
    return location.assign(pathInfo.finalRequestPath ?? pathInfo.requestPath);
  }
  if (target.id === "request") target.scrollTop = 0;
  target.classList.add("is-loading");
  if (target.id !== "found") openings += 1;
});
addEventListener("htmx:afterRequest", (event) => {
  const { target } = /** @type {CustomEvent} */ (event).detail;
  if (!target.matches("#request, #drawer, #found")) return;
  target.classList.remove("is-loading");
  if (target.id !== "found") openings -= 1;
});
// The one that looks chosen is then again the one that is shown.
addEventListener("htmx:sendError", (event) => {
  if (/** @type {CustomEvent} */ (event).detail.target.id === "request")
    focus(document.querySelector("#waiting [aria-current]"));
});

/* The drawer: the page of one row, over the list that it is of. */

const drawer = document.getElementById("drawer");
/** The list under the open drawer; null: the drawer is closed. */
let below = /** @type {{ address: string, title: string, opener: Element | null, depth: number } | null} */ (null);

addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr, pathInfo, requestConfig } = /** @type {CustomEvent} */ (event).detail;
  if ((target === drawer || target.id === "request") && xhr.status >= 400) return location.assign(pathInfo.requestPath);
  if (drawer === null || target !== drawer || event.defaultPrevented) return;
  drawer.dataset["isOpen"] = String(below !== null);
  below ??= { address: location.href, title: document.title, opener: null, depth: 0 };
  below.opener?.removeAttribute("aria-current");
  below.opener = requestConfig.elt;
  requestConfig.elt.setAttribute("aria-current", "true");
});

// One entry of the history, however many rows are looked at: going back leads to the list.
addEventListener("htmx:beforeHistoryUpdate", (event) => {
  const { target, history: update } = /** @type {CustomEvent} */ (event).detail;
  if (drawer !== null && target === drawer && drawer.dataset["isOpen"] === "true") update.type = "replace";
});

addEventListener("htmx:afterSwap", (event) => {
  if (drawer === null || /** @type {CustomEvent} */ (event).detail.target !== drawer) return;
  // A page that has no such part is shown whole.
  if (drawer.childElementCount === 0) return location.reload();
  const whole = make("a", "Open as page");
  whole.className = "button button-plain";
  whole.setAttribute("href", location.href);
  const close = make("button", "Close");
  close.className = "button-plain";
  close.addEventListener("click", closeDrawer);
  const bar = make("div", whole, close);
  bar.className = "drawer-bar";
  drawer.prepend(bar);
  drawer.scrollTop = 0;
  close.focus();
});

/** The keyboard stays in an open drawer. */
function keepInDrawer(/** @type {KeyboardEvent} */ event) {
  if (drawer === null || below === null) return;
  const stops = [
    ...drawer.querySelectorAll("a[href], button, input, textarea, select, summary, [tabindex='0']"),
  ].filter(
    (stop) => stop instanceof HTMLElement && stop.checkVisibility() && !stop.matches(":disabled, [type=hidden]"),
  );
  const at = stops.findIndex((stop) => stop === document.activeElement);
  const end = event.shiftKey ? 0 : stops.length - 1;
  if (at !== -1 && at !== end) return;
  event.preventDefault();
  focus(stops.at(event.shiftKey ? -1 : 0));
}

function closeDrawer() {
  // The entry of the history that this leads to is the list's: see `popstate`.
  if (below !== null) history.go(-below.depth);
}

// A part that htmx opened under its own address: the address that the browser goes back to is shown whole, unless it is
// that of the list under the drawer. A link to a place on the same page is no other address.
const addressOf = () => location.pathname + location.search;
let shown = addressOf();
addEventListener("htmx:replacedInHistory", () => (shown = addressOf()));
addEventListener("htmx:pushedIntoHistory", () => {
  shown = addressOf();
  if (below !== null) below.depth += 1;
});
addEventListener("popstate", (event) => {
  if (below === null || location.href !== below.address) {
    if (addressOf() !== shown) location.reload();
    return;
  }
  // htmx would load it again.
  event.stopImmediatePropagation();
  const { title, opener } = below;
  below = null;
  opener?.removeAttribute("aria-current");
  shown = addressOf();
  drawer?.replaceChildren();
  document.title = title;
  if (opener instanceof HTMLElement) opener.focus();
  // It may have changed meanwhile.
  refresh().catch(() => {});
});

/* Boxes that select rows. */

/** The one that was chosen last; with Shift, the next one takes those between along. */
let lastBox = /** @type {Element | null} */ (null);

addEventListener("click", (event) => {
  const { target } = event;
  const all = document.querySelector("input[data-selects]");
  if (!(target instanceof HTMLInputElement) || !(all instanceof HTMLInputElement) || target.form !== all.form) return;
  const boxes = [...document.querySelectorAll("tbody input[type=checkbox]")].filter(
    (box) => box instanceof HTMLInputElement,
  );
  if (target === all) for (const box of boxes) box.checked = all.checked;
  const places = [boxes.findIndex((box) => box === lastBox), boxes.indexOf(target)];
  if (event.shiftKey && !places.includes(-1)) {
    for (const box of boxes.slice(Math.min(...places), Math.max(...places))) box.checked = target.checked;
  }
  lastBox = target;
  const count = boxes.filter(({ checked }) => checked).length;
  all.checked = count > 0 && count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
});

addEventListener("reset", () => {
  for (const all of document.querySelectorAll("input[data-selects]")) Object.assign(all, { indeterminate: false });
});

/* Lists that save what is chosen. A question of the option is asked first. */

/** Keys pass over other options on their way to the one that is meant: they save by the button. */
let isByKeys = false;
addEventListener("pointerdown", () => (isByKeys = false), true);
addEventListener(
  "keydown",
  ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || !target.matches("[data-saves]")) return;
    isByKeys = true;
    saveOf(target)?.removeAttribute("hidden");
  },
  true,
);

const saveOf = (/** @type {HTMLSelectElement} */ { form }) => form?.querySelector("button") ?? null;

addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLSelectElement) || !target.matches("[data-saves]") || isByKeys) return;
  const save = saveOf(target);
  if (save !== null && !asksFirst(target, save)) target.form?.requestSubmit(save);
});

// The button asks, too.
addEventListener("click", (event) => {
  const save = event.target instanceof Element ? event.target.closest("button") : null;
  const list = save?.form?.querySelector("select[data-saves]");
  if (list instanceof HTMLSelectElement && save !== null && asksFirst(list, save)) event.preventDefault();
});

/** Shows the question of what is chosen; false: there is none. */
function asksFirst(/** @type {HTMLSelectElement} */ list, /** @type {HTMLButtonElement} */ save) {
  const question = list.selectedOptions[0]?.dataset["question"];
  if (question === undefined) return false;
  save.dataset["question"] = question;
  confirm(save, []).addEventListener("close", () => {
    const before = [...list.options].findIndex(({ defaultSelected }) => defaultSelected);
    list.selectedIndex = before;
  });
  return true;
}

/* The event stream. */

/** @type {EventSource | null} */
let source = null;
let polling = 0;
let returning = 0;

function listen() {
  if (follows === undefined || source !== null || document.hidden) return;
  let isNew = true;
  source = new EventSource("/events");
  source.addEventListener("open", () => {
    stopPolling();
    // Events between loading the page and opening the stream would be missed. A reconnected stream has no gap.
    if (isNew) refresh().catch(() => {});
    isNew = false;
  });
  source.addEventListener("error", () => {
    if (polling === 0) polling = setInterval(refresh, POLL_MS);
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    // The stream was refused: the session may have ended, so load the page now.
    refresh().catch(() => {});
    returning = setTimeout(listen, COME_BACK_MS);
  });
  for (const status of STATUSES) source.addEventListener(`action.${status}`, hear);
}

function hear(/** @type {MessageEvent<string>} */ event) {
  const { data } = JSON.parse(event.data);
  if (follows === "all" || follows === data.id) refresh().catch(() => {});
}

function stopPolling() {
  clearInterval(polling);
  polling = 0;
}

/** Stops all requests while the page is hidden. */
function rest() {
  source?.close();
  source = null;
  clearTimeout(returning);
  stopPolling();
}

document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
addEventListener("pagehide", rest);
addEventListener("pageshow", listen);

/* Keyboard shortcuts. Those that decide ask for confirmation. */

const isMac = /^(?:Mac|iP)/.test(navigator.platform);

const KEYS = [
  [isMac ? "⌘K" : "Ctrl K", "Go to a page, find an action"],
  ["/", "Search"],
  ["j, k", "Next, previous"],
  ["Enter", "Open"],
  ["a", "Approve, after a confirmation"],
  ["x", "Reject or cancel, after a confirmation"],
  ["r", "Retry, or reject in Approvals, after a confirmation"],
  ["?", "This help"],
];

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
    event.preventDefault();
    return openPalette();
  }
  if (key === "Escape") return closeTop();
  if (key === "Tab" && document.querySelector("dialog[open]") === null) return keepInDrawer(event);
  if (event.ctrlKey || event.altKey || event.metaKey || (event.repeat && !"jk".includes(key))) return;
  if (target instanceof Element && target.closest("input, textarea, select, dialog") !== null) return;
  if (press(key)) event.preventDefault();
});

/** Returns whether the key did something. */
function press(/** @type {string} */ key) {
  if (key === "/") return focus(document.getElementById("search")) || openPalette();
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  if (key === "?") return showKeys();
  return ["a", "x", "r"].includes(key) && decide(key);
}

function focus(/** @type {Element | null | undefined} */ element) {
  if (!(element instanceof HTMLElement)) return false;
  element.focus();
  element.scrollIntoView({ block: "nearest" });
  return true;
}

/** The request that its decision is for: that of the open drawer, else that of the page. */
function shownRequest() {
  const request = (below === null ? mainOf() : drawer)?.querySelector(".request[data-shown]");
  return request instanceof HTMLElement ? request : null;
}

function move(/** @type {number} */ by) {
  const items = [...document.querySelectorAll("[data-item], .row-link")];
  const at = items.findIndex((item) => item.closest("li, tr")?.contains(document.activeElement));
  const from = at === -1 ? items.findIndex((item) => item.matches("[aria-current]")) : at;
  const next = items[from === -1 && by < 0 ? items.length - 1 : Math.min(Math.max(from + by, 0), items.length - 1)];
  const isOpened = below === null ? next?.matches("[data-opens]:not([aria-current])") : next !== below.opener;
  // In a closed fold it could not have the focus, and another request would be open than the one that looks chosen.
  next?.closest("details")?.setAttribute("open", "");
  if (next instanceof HTMLElement && isOpened) next.click();
  return focus(next);
}

/** For the request that is open, the focused item, or the page's only action. In the list of actions, it opens the action. */
function decide(/** @type {string} */ key) {
  // While another one loads, what looks chosen is not what is shown.
  if (openings > 0) return true;
  const open = shownRequest();
  const decision = open?.querySelector(`button[data-key="${key}"]`);
  const asks = new CustomEvent("request:decides", { bubbles: true, cancelable: true });
  if (decision instanceof HTMLButtonElement && !decision.dispatchEvent(asks)) return focus(decision);
  if (decision instanceof HTMLButtonElement && !decision.disabled) {
    const dialog = confirm(decision, open?.querySelectorAll("[data-asked]:not([data-asked] *)") ?? []);
    dialog.dataset["shown"] = open?.dataset["shown"] ?? "";
    tellBelow();
    return true;
  }
  // An open drawer is the place of what its keys decide.
  const items = below === null ? document.querySelectorAll("[data-item], .row-link") : [];
  const item = document.activeElement?.closest("li, tr") ?? (items.length === 1 ? items[0]?.closest("li, tr") : null);
  const whole = below === null ? document : drawer;
  const place = items.length === 0 ? whole : item;
  const button = place?.querySelector(`button[data-key="${key}"]`);
  if (button instanceof HTMLButtonElement && !button.disabled) {
    confirm(button, place?.querySelectorAll("[data-asked]") ?? []);
    return true;
  }
  const link = item?.querySelector("a.row-link");
  if (link instanceof HTMLAnchorElement) location.assign(link.href);
  return link instanceof HTMLAnchorElement;
}

/**
 * Shows the request again. The focus is on the question, so that pressing a key twice doesn't decide. An update below the
 * question may change what the form is for: then nothing is sent.
 */
function confirm(/** @type {HTMLButtonElement} */ button, /** @type {Iterable<Element>} */ asked) {
  const decides = make("button", ...[...button.childNodes].map((child) => child.cloneNode(true)));
  decides.className = button.className;
  const meant = sentBy(button);
  decides.addEventListener("click", () => {
    if (meant !== null && sentBy(button) === meant) button.form?.requestSubmit(button);
    else tellChanged();
  });
  const heading = make("h2", button.dataset.question ?? "");
  heading.tabIndex = -1;
  heading.autofocus = true;
  const parts = [...asked].map((part) => copyOf(part));
  const end = make("div");
  end.dataset["end"] = "";
  const dialog = openDialog(heading, ...parts, end, make("div", decides, make("button", "Back"), ...noteOf(button)));
  dialog.classList.toggle("wide", parts.length > 0);
  // What is folded in it is loaded there, too.
  htmx.process(dialog);
  return dialog;
}

/** The note of the form, to be written in the confirmation too. */
function noteOf(/** @type {HTMLButtonElement} */ button) {
  const note = button.form?.querySelector("textarea");
  if (!(note instanceof HTMLTextAreaElement)) return [];
  const copy = make("textarea");
  if (!(copy instanceof HTMLTextAreaElement)) return [];
  copy.rows = 1;
  copy.maxLength = note.maxLength;
  copy.value = note.value;
  copy.placeholder = "Add a note";
  copy.setAttribute("aria-label", "Note");
  copy.addEventListener("input", () => (note.value = copy.value));
  return [copy];
}

/** Where and what a button sends; null: it can't any more. */
function sentBy(/** @type {HTMLButtonElement} */ { form, disabled }) {
  if (form === null || !form.isConnected || disabled) return null;
  // The note is written here.
  return JSON.stringify([form.action, ...[...new FormData(form)].filter(([name]) => name !== "reason")]);
}

function tellChanged() {
  const heading = make("h2", "This has changed");
  heading.tabIndex = -1;
  heading.autofocus = true;
  openDialog(
    heading,
    make("p", "Nothing was sent, because it is not what you were asked about any more. Look at it again."),
    make("div", make("button", "Back")),
  );
}

/** Without IDs, which must be unique on a page. */
function copyOf(/** @type {Element} */ part) {
  const copy = make("div", part.cloneNode(true));
  for (const element of copy.querySelectorAll("[id]")) element.removeAttribute("id");
  // The dialog has an end of its own.
  for (const other of copy.querySelectorAll("form, .hidden-values, .copy, [data-copy][hidden], [data-end]"))
    other.remove();
  for (const card of copy.querySelectorAll(".card")) card.className = "asked";
  return copy;
}

function showKeys() {
  const rows = KEYS.flatMap(([key = "", what = ""]) => [make("dt", make("kbd", key)), make("dd", what)]);
  openDialog(make("h2", "Keyboard shortcuts"), make("dl", ...rows), make("div", make("button", "Close")));
  return true;
}

function openDialog(/** @type {HTMLElement} */ heading, /** @type {HTMLElement[]} */ ...parts) {
  const dialog = make("dialog", heading, ...parts);
  heading.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", heading.id);
  const [list] = dialog.querySelectorAll(":scope > dl");
  if (list !== undefined) list.className = "facts";
  const row = dialog.lastElementChild;
  if (row !== null) row.className = "buttons";
  for (const [at, button] of [...(row?.querySelectorAll("button") ?? [])].entries()) {
    button.addEventListener("click", () => dialog.close());
    if (at > 0) button.className = "button-plain";
  }
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Says in the decision how much of the request is below; `inbox.js` listens. */
const tellBelow = () => dispatchEvent(new Event("request:shown"));

/** Strings are added as text, not HTML. */
function make(/** @type {string} */ name, /** @type {(string | Node)[]} */ ...children) {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

/* The palette: go to a page, find an action. */

const palette = document.getElementById("palette");
const paletteText = document.getElementById("palette-text");

function openPalette() {
  if (!(palette instanceof HTMLDialogElement) || !(paletteText instanceof HTMLInputElement)) return false;
  if (!palette.open) palette.showModal();
  paletteText.select();
  htmx.trigger(paletteText, "palette");
  return true;
}

const foundIn = () => [...document.querySelectorAll("#found [role=option]")];
const chosenOf = (/** @type {Element[]} */ items) => items.findIndex((item) => item.ariaSelected === "true");

/** The entry that Enter leads to. The focus stays in the field, so it tells screen readers which one that is. */
function choose(/** @type {Element | undefined} */ next) {
  for (const item of foundIn()) item.ariaSelected = String(item === next);
  if (next === undefined) paletteText?.removeAttribute("aria-activedescendant");
  else paletteText?.setAttribute("aria-activedescendant", next.id);
  next?.scrollIntoView({ block: "nearest" });
}

addEventListener("htmx:afterSwap", (event) => {
  if (/** @type {CustomEvent} */ (event).detail.target.id === "found") choose(foundIn()[0]);
});

palette?.addEventListener("keydown", (event) => {
  const items = foundIn();
  const at = chosenOf(items);
  if (event.key === "Enter") {
    const link = items[at];
    if (link instanceof HTMLAnchorElement) location.assign(link.href);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    choose(items[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), items.length - 1)]);
  } else if (event.key === "Escape" && palette instanceof HTMLDialogElement) {
    // A search field would take the first one to empty itself.
    palette.close();
  } else return;
  event.preventDefault();
});

addEventListener("click", (event) => {
  const { target } = event;
  if (!(target instanceof Element)) return;
  if (target.closest("[data-open=palette]") !== null && openPalette()) event.preventDefault();
  if (target === palette && palette instanceof HTMLDialogElement) palette.close();
  for (const menu of document.querySelectorAll("details.menu[open], .person-menu details[open]")) {
    if (!menu.contains(target)) menu.removeAttribute("open");
  }
  const copied = target.closest("[data-copy-text], [data-copy-near]");
  if (!(copied instanceof HTMLElement)) return;
  copyText(copied.dataset["copyText"] ?? copied.previousElementSibling?.textContent ?? "", copied);
});

/** Closes the open menu, else the drawer. Dialogs close themselves. */
function closeTop() {
  const menu = document.querySelector("details.menu[open], .person-menu details[open]");
  if (menu !== null) {
    menu.removeAttribute("open");
    menu.querySelector("summary")?.focus();
  } else if (document.querySelector("dialog[open]") === null) closeDrawer();
}

/* Copy buttons, local times. */

/** Shows the copy buttons if the browser allows copying, and turns the times to the reader's zone. */
function prepare(/** @type {ParentNode} */ place) {
  for (const list of document.querySelectorAll("[data-days]")) divideDays(list);
  tellTimes(place);
  for (const input of place.querySelectorAll("input[type=datetime-local]"))
    if (input instanceof HTMLInputElement) toLocal(input);
  for (const all of place.querySelectorAll("[data-selects]")) all.removeAttribute("hidden");
  for (const list of place.querySelectorAll("select[data-saves]"))
    if (list instanceof HTMLSelectElement) saveOf(list)?.setAttribute("hidden", "");
  for (const list of place.querySelectorAll("[data-by-day]")) byDay(list);
  if (navigator.clipboard === undefined) return;
  for (const button of place.querySelectorAll("[data-copy-text], [data-copy-near]")) button.removeAttribute("hidden");
  for (const block of place.querySelectorAll("[data-copy]")) {
    if (block.nextElementSibling?.matches(".copy") === true) continue;
    const text = (block.querySelector("pre") ?? block).textContent ?? "";
    const button = make("button", "Copy");
    button.className = "copy";
    button.setAttribute("type", "button");
    button.addEventListener("click", () => copyText(text, button));
    block.after(button);
  }
}

/** A list by day: the server knows the days in UTC alone. */
function byDay(/** @type {Element} */ list) {
  const days = /** @type {Map<string, Element[]>} */ (new Map());
  for (const entry of list.querySelectorAll("li")) {
    const name = dayName(new Date(entry.querySelector("time")?.dateTime ?? ""));
    days.set(name, [...(days.get(name) ?? []), entry]);
  }
  list.replaceChildren(...[...days].map(([name, of]) => make("section", make("h2", name), make("ol", ...of))));
}

function dayName(/** @type {Date} */ at) {
  const nowMs = Date.now() - (Number.isNaN(aheadMs) ? 0 : aheadMs);
  const ago = [0, 86_400_000].findIndex((ms) => new Date(nowMs - ms).toDateString() === at.toDateString());
  return ["Today", "Yesterday"][ago] ?? weekday.format(at);
}

/** What a copy button says when it has nothing to tell. @type {WeakMap<HTMLElement, string>} */
const told = new WeakMap();

function copyText(/** @type {string} */ text, /** @type {HTMLElement} */ button) {
  const isIcon = button.querySelector("svg") !== null;
  const say = (/** @type {string} */ word) => {
    if (isIcon) button.title = word;
    else button.textContent = word;
  };
  const tell = (/** @type {string} */ word) => () => {
    const before = told.get(button) ?? (isIcon ? button.title : (button.textContent ?? ""));
    told.set(button, before);
    say(word);
    button.setAttribute("data-told", word);
    setTimeout(() => {
      say(before);
      button.removeAttribute("data-told");
    }, TOLD_MS);
  };
  navigator.clipboard.writeText(text).then(tell("Copied"), tell("Copy failed"));
}

const UNITS = /** @type {const} */ ([
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
]);

function untilWords(/** @type {number} */ ms) {
  if (ms < 1_000) return "now";
  const [size, word] = UNITS.find(([unit]) => ms >= unit) ?? [1_000, "s"];
  return `in ${Math.floor(ms / size)} ${word}`;
}

function agoWords(/** @type {number} */ ms) {
  const [size, word] = UNITS.find(([unit]) => ms >= unit) ?? [0, ""];
  return size === 0 ? "just now" : `${Math.floor(ms / size)} ${word} ago`;
}

const day = /** @type {const} */ ({ day: "numeric", month: "short", year: "numeric" });
const clock = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minute = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit" });
const date = /** @type {const} */ ({ day: "numeric", month: "short" });
const FORMATS = {
  day: new Intl.DateTimeFormat("en-GB", day),
  weekday: new Intl.DateTimeFormat("en-GB", { ...day, weekday: "short" }),
  clock: new Intl.DateTimeFormat("en-GB", clock),
  full: new Intl.DateTimeFormat("en-GB", { ...day, ...clock, timeZoneName: "short" }),
  minutes: new Intl.DateTimeFormat("en-GB", { ...day, ...minute, timeZoneName: "short" }),
  short: new Intl.DateTimeFormat("en-GB", { ...date, ...minute }),
  minute: new Intl.DateTimeFormat("en-GB", minute),
  date: new Intl.DateTimeFormat("en-GB", date),
};
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const zone = new Intl.DateTimeFormat("en-GB", { ...day, ...clock, timeZoneName: "short" });

function wordsOf(/** @type {string} */ as, /** @type {Date} */ at, /** @type {number} */ ms) {
  if (as === "ago") return agoWords(ms);
  if (as === "until") return untilWords(-ms);
  // Of today the time alone, of other days without seconds.
  const dayForm = at.toDateString() === new Date().toDateString() ? "clock" : "short";
  const name = as === "when" ? dayForm : as;
  return FORMATS[/** @type {keyof typeof FORMATS} */ (name)]?.format(at);
}

/** Relative times have the local time as their tooltip, and absolute times how long ago it was. */
function tellTimes(/** @type {ParentNode} */ place, /** @type {string | null} */ only = null) {
  for (const time of place.querySelectorAll(only === null ? "time[data-time]" : `time[data-time=${only}]`)) {
    const at = new Date(time.getAttribute("datetime") ?? "");
    const ms = Date.now() - (Number.isNaN(aheadMs) ? 0 : aheadMs) - at.getTime();
    const as = time.getAttribute("data-time") ?? "";
    const words = wordsOf(as, at, ms);
    if (words !== undefined && time.textContent !== words) time.textContent = words;
    const title = as === "ago" || ms < 0 ? zone.format(at) : `${agoWords(ms)}, ${zone.format(at)}`;
    if (time.getAttribute("title") !== title) time.setAttribute("title", title);
  }
}

/** Puts a divider where a day of the reader begins; those of the page stand where one of UTC does. */
function divideDays(/** @type {Element} */ list) {
  for (const divider of list.querySelectorAll(".day")) divider.remove();
  let before = new Date(Date.now() - (Number.isNaN(aheadMs) ? 0 : aheadMs)).toDateString();
  for (const row of list.querySelectorAll("tr")) {
    const text = row.querySelector("time")?.getAttribute("datetime") ?? "";
    const of = new Date(text).toDateString();
    if (of !== before) {
      const time = make("time", "");
      time.setAttribute("datetime", text);
      time.setAttribute("data-time", "weekday");
      const head = make("th", time);
      head.setAttribute("scope", "rowgroup");
      head.setAttribute("colspan", String(row.children.length));
      const divider = make("tr", head);
      divider.className = "day";
      row.before(divider);
    }
    before = of;
  }
}

/* Fields for a time hold UTC as they come; with script they are in the reader's zone, and send UTC. */

/** @type {WeakSet<HTMLInputElement>} */
const zoned = new WeakSet();

function toLocal(/** @type {HTMLInputElement} */ input) {
  const label = input.labels?.[0];
  const name = zone.formatToParts(new Date()).find(({ type }) => type === "timeZoneName")?.value ?? "local time";
  if (label !== undefined) label.textContent = (label.textContent ?? "").replace("(UTC)", `(${name})`);
  if (zoned.has(input)) return;
  zoned.add(input);
  const at = new Date(`${input.value}Z`);
  if (Number.isNaN(at.getTime())) return;
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  input.value = local;
  input.defaultValue = local;
}

addEventListener("formdata", ({ target, formData }) => {
  const fields = target instanceof HTMLFormElement ? [...target.elements] : [];
  for (const input of fields) {
    if (!(input instanceof HTMLInputElement) || !zoned.has(input)) continue;
    const at = new Date(input.value);
    if (!Number.isNaN(at.getTime())) formData.set(input.name, `${at.toISOString().slice(0, 19)}Z`);
  }
});

setInterval(() => tellTimes(document), AGES_MS);
setInterval(() => tellTimes(document, "until"), 1_000);
prepare(document);
if (isMac) for (const key of document.querySelectorAll("[data-open=palette] kbd")) key.textContent = "⌘K";
// A phone shows a part of the row of filters.
document.querySelector(".filter-links [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
listen();
