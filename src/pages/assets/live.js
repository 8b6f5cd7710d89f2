/**
 * What the pages do by themselves where a browser runs scripts: they follow the account's events, take keys, offer to
 * copy. Without it every page works by its links and forms. The server alone writes HTML: what has changed is read from
 * the same page, asked for again, and put in the place of the old.
 */
const STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];
/** Between two loads of a page on which much happens. */
const PAUSE_MS = 1_000;
/** While the stream is broken. */
const POLL_MS = 5_000;
const COME_BACK_MS = 10_000;
const AGES_MS = 20_000;

const { follows, now } = document.querySelector("main")?.dataset ?? {};
/** How far this clock goes before the server's. */
const aheadMs = Date.now() - Date.parse(now ?? "");
const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* The page as the server has it now. */

/** What each part looked like as it came, before anybody typed into it. @type {WeakMap<Element, string>} */
const asItCame = new WeakMap();
let isLoading = false;
let isOutdated = false;

/** Loads the page again, and once more if something happened meanwhile. */
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
    // The service is away for a moment: the stream breaks too, and whoever polls tries again.
  } finally {
    isLoading = false;
  }
}

async function load() {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  // The session has ended, or what was to be decided is decided.
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

/** Whether somebody types here, or has typed something that would be lost. */
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

/** Keeps what stays where it is, so that nobody loses their place; what is gone while somebody types stays, and says so. */
function mergeItems(/** @type {Element} */ list, /** @type {Element} */ next) {
  const fresh = [...next.children];
  const ids = new Set(fresh.map((item) => item.id));
  // The collection itself changes while it is walked.
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

/* The events of the account. */

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
    // Between the page and its stream something may have happened; a stream that comes back goes on without a gap.
    if (isNew) refresh().catch(() => {});
    isNew = false;
  });
  source.addEventListener("error", () => {
    if (polling === 0) polling = setInterval(refresh, POLL_MS);
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    // It was refused, not broken: whoever has logged out elsewhere is not to see this page until the next look.
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

/** Nobody looks: nothing is asked for. */
function rest() {
  source?.close();
  source = null;
  clearTimeout(returning);
  stopPolling();
}

document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
addEventListener("pagehide", rest);
addEventListener("pageshow", listen);

/* A bulk retry goes on by itself, step by step, until it is done or somebody stops it by leaving. */

addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.hasAttribute("data-batch")) return;
  event.preventDefault();
  runBatch(form).catch(() => listen());
});

async function runBatch(/** @type {HTMLFormElement | null} */ first) {
  rest();
  for (let form = first; form !== null; form = document.querySelector("#batch form[data-batch]")) {
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    document.title = fresh.title;
    document.querySelector("main")?.replaceChildren(...(fresh.querySelector("main")?.childNodes ?? []));
    if (!response.ok) return;
  }
}

/* Keys. None of them decides anything: it asks first. */

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

/** Tells whether the key meant something here. */
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

/** Of the item that has the focus, or of the page's one action. In a list it leads to where the whole request stands. */
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

/** Shows once more what is decided on; the focus is on the question, so that no key pressed twice decides. */
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

/** Without the ids, of which a page has each once. */
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

/** Every button closes it. */
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

/** Text stays text. */
function make(/** @type {string} */ name, /** @type {(string | Node)[]} */ ...children) {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

/* What a page gets beside. */

/** A button to copy what stands in a block; where the browser lets pages write to the clipboard. */
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
