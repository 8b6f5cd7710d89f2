/**
 * Live updates, keyboard shortcuts and copy buttons. Every page works without it. Only the server writes HTML: this script
 * loads the same page again and replaces the parts that have changed.
 */
const STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];
/** The shortest time between two updates. */
const PAUSE_MS = 1_000;
/** Polling interval without a stream. */
const POLL_MS = 5_000;
const COME_BACK_MS = 10_000;
const AGES_MS = 20_000;

const { follows, now } = document.querySelector("main")?.dataset ?? {};
/** The difference between this clock and the server's. */
const aheadMs = Date.now() - Date.parse(now ?? "");
const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* Updates of the page. */

/** The HTML of each part as the server sent it. @type {WeakMap<Element, string>} */
const asItCame = new WeakMap();
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

async function load() {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  // The session has ended, or the action is decided.
  if (response.redirected && !isTouched(document.body)) location.assign(response.url);
  if (!response.ok || response.redirected) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  document.title = fresh.title;
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (next === null) continue;
    if (part.getAttribute("data-live") === "items") mergeItems(part, next);
    else replace(part, next);
  }
  prepare(document);
}

/** Whether a part has focus or input that would be lost. */
function isTouched(/** @type {Element} */ part) {
  const inputs = [...part.querySelectorAll("input:not([type=hidden]), textarea, select")];
  const isChanged = inputs.some((input) => input.value !== input.defaultValue && input.defaultValue !== undefined);
  return isChanged || inputs.some((input) => input === document.activeElement && input.type !== "search");
}

function replace(/** @type {Element} */ part, /** @type {Element} */ next) {
  const html = next.innerHTML;
  if (asItCame.get(part) === html || isTouched(part)) return;
  asItCame.set(part, html);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const open = [...part.querySelectorAll("details")].map((details) => details.open);
  part.replaceChildren(...next.childNodes);
  for (const [at, details] of part.querySelectorAll("details").entries()) details.open = open[at] ?? details.open;
  if (focused === null) return;
  const [name, value] = focused.id === "" ? ["href", focused.getAttribute("href")] : ["id", focused.id];
  part.querySelector(`[${name}="${CSS.escape(value ?? "")}"]`)?.focus();
}

/** Updates a list in place. An item that is gone but has input stays, with a note. */
function mergeItems(/** @type {Element} */ list, /** @type {Element} */ next) {
  const fresh = [...next.children];
  const ids = new Set(fresh.map((item) => item.id));
  // A copy, because the loop changes the collection.
  for (const item of Array.from(list.children)) {
    if (ids.has(item.id)) continue;
    item.querySelector("[data-gone]")?.removeAttribute("hidden");
    for (const button of item.querySelectorAll("button")) button.disabled = true;
    if (!isTouched(item)) item.remove();
  }
  fresh.forEach((item, at) => {
    const mine = [...list.children].find(({ id }) => id === item.id);
    if (mine !== undefined) return replace(mine, item);
    item.classList.add("arrived");
    asItCame.set(item, item.innerHTML);
    list.insertBefore(item, list.children[at] ?? null);
  });
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

const KEYS = [
  ["/", "Search"],
  ["j, k", "Next, previous"],
  ["Enter", "Open"],
  ["a", "Approve, after a confirmation"],
  ["x", "Reject or cancel, after a confirmation"],
  ["r", "Retry, after a confirmation"],
  ["?", "This help"],
];

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || (event.repeat && !"jk".includes(key))) return;
  if (target instanceof Element && target.closest("input, textarea, select, dialog") !== null) return;
  if (press(key)) event.preventDefault();
});

/** Returns whether the key did something. */
function press(/** @type {string} */ key) {
  if (key === "/") return focus(document.getElementById("search"));
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  if (key === "?") return showKeys();
  return ["a", "x", "r"].includes(key) && decide(key);
}

function focus(/** @type {HTMLElement | null | undefined} */ element) {
  element?.focus();
  element?.scrollIntoView({ block: "nearest" });
  return element !== null && element !== undefined;
}

function move(/** @type {number} */ by) {
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex((item) => item.closest("li")?.contains(document.activeElement));
  return focus(items[at === -1 && by < 0 ? items.length - 1 : Math.min(Math.max(at + by, 0), items.length - 1)]);
}

/** For the focused item, or the page's only action. In the list of actions, it opens the action. */
function decide(/** @type {string} */ key) {
  const items = document.querySelectorAll("[data-item]");
  const item = document.activeElement?.closest("li") ?? (items.length === 1 ? items[0]?.closest("li") : null);
  const place = items.length === 0 ? document : item;
  const button = place?.querySelector(`button[data-key="${key}"]`);
  if (button instanceof HTMLButtonElement && !button.disabled) {
    confirm(button, place?.querySelectorAll("[data-asked]") ?? []);
    return true;
  }
  const link = item?.querySelector("a.row-link[data-item]");
  if (link instanceof HTMLAnchorElement) location.assign(link.href);
  return link instanceof HTMLAnchorElement;
}

/** Shows the request again. The focus is on the question, so that pressing a key twice doesn't decide. */
function confirm(/** @type {HTMLButtonElement} */ button, /** @type {Iterable<Element>} */ asked) {
  const decides = make("button", button.textContent ?? "");
  decides.className = button.className;
  decides.addEventListener("click", () => button.form?.requestSubmit(button));
  const heading = make("h2", button.dataset.question ?? "");
  heading.tabIndex = -1;
  heading.autofocus = true;
  const parts = [...asked].map((part) => copyOf(part));
  const dialog = openDialog(heading, ...parts, make("div", decides, make("button", "Back")));
  dialog.classList.toggle("wide", parts.length > 0);
}

/** Without IDs, which must be unique on a page. */
function copyOf(/** @type {Element} */ part) {
  const copy = make("div", part.cloneNode(true));
  for (const element of copy.querySelectorAll("[id]")) element.removeAttribute("id");
  for (const form of copy.querySelectorAll("form")) form.remove();
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
  for (const [at, button] of [...(row?.children ?? [])].entries()) {
    button.addEventListener("click", () => dialog.close());
    if (at > 0) button.className = "button-plain";
  }
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Strings are added as text, not HTML. */
function make(/** @type {string} */ name, /** @type {(string | Node)[]} */ ...children) {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

/* Copy buttons and relative times. */

/** Adds a copy button to each block, if the browser allows it. */
function prepare(/** @type {ParentNode} */ place) {
  if (navigator.clipboard === undefined) return;
  for (const block of place.querySelectorAll("[data-copy]:not([data-ready])")) {
    block.setAttribute("data-ready", "");
    const text = (block.querySelector("pre") ?? block).textContent ?? "";
    const button = make("button", "Copy");
    button.className = "button-plain copy";
    button.setAttribute("type", "button");
    const tell = (/** @type {string} */ word) => () => (button.textContent = word);
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(text).then(tell("Copied"), tell("Copy failed"));
    });
    block.after(button);
  }
}

function agoWords(/** @type {number} */ ms) {
  const units = /** @type {const} */ ([
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
  ]);
  const [size, word] = units.find(([unit]) => ms >= unit) ?? [0, ""];
  const count = Math.floor(ms / size);
  return size === 0 ? "just now" : `${count} ${word}${count === 1 ? "" : "s"} ago`;
}

function tellAges() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const words = agoWords(Date.now() - aheadMs - Date.parse(time.getAttribute("datetime") ?? ""));
    if (time.textContent !== words) time.textContent = words;
  }
}

for (const part of document.querySelectorAll("[data-live=items] > *, [data-live]")) {
  asItCame.set(part, part.innerHTML);
}
setInterval(tellAges, AGES_MS);
prepare(document);
listen();
