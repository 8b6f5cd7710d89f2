/**
 * Adds live updates, keyboard, palette, copy buttons and local times. Every page works without it. Only the server writes
 * HTML: htmx loads a page or part of it, and idiomorph changes only what differs.
 */
import { copyByButtons, showCopyButtons } from "./copy.ts";
import { openDrawers, showLoading } from "./drawer.ts";
import { focus, onClick } from "./elements.ts";
import { nameKeys, readKeys } from "./keyboard.ts";
import { askFirst, selectRows } from "./lists.ts";
import { keepInputs } from "./morph.ts";
import { keepNotes, showNotes } from "./notes.ts";
import { watchPalette } from "./palette.ts";
import { watchRequest } from "./review.ts";
import { keepTimes, prepareTimes, sendUtc } from "./times.ts";
import { checkAnswers, followEvents, refresh } from "./updates.ts";

const UPDATE_MS_MAX = 60_000;

// Lets htmx load and morph parts of pages, but never run code from them. It reads this when the page is parsed, after this script.
Object.assign(htmx.config, {
  allowEval: false,
  allowScriptTags: false,
  includeIndicatorStyles: false,
  selfRequestsOnly: true,
  disableInheritance: true,
  historyCacheSize: 0,
  // Without `style`, which the page's policy would refuse.
  attributesToSettle: ["class", "width", "height"],
  refreshOnHistoryMiss: true,
  scrollIntoViewOnBoost: false,
  // By default it waits for ever, and no later update would begin.
  timeout: UPDATE_MS_MAX,
});

function prepare(place: ParentNode): void {
  prepareTimes(place);
  showCopyButtons(place);
  showNotes(place);
  nameKeys(place);
}

/** Closes open menus on a press outside of them, and when the focus leaves them: they would cover what has it. */
function closeMenus(): void {
  const close = ({ target }: Event) => {
    if (!(target instanceof Element)) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(target)) menu.removeAttribute("open");
    }
  };
  addEventListener("click", close);
  addEventListener("focusin", close);
}

/** Focuses the field of an opened fold, so that typing after "Add note" writes the note and presses no shortcut. */
function enterOpened(): void {
  onClick(":is(.decide-note, .add):not([open]) > summary", ({ parentElement: fold }) =>
    requestAnimationFrame(() => focus(fold?.querySelector("textarea, input:not([type=hidden])"))),
  );
}

/** Clicks on the button of a form count again when none came for this long. */
const SECOND_CLICK_MS = 1_000;

/**
 * Sends a form once, however often its button is clicked while the answer is on its way. After a decision, the next request has its
 * buttons in the same place: holds the clicks that go on there, too.
 */
function holdSecondClick(): void {
  const shownMs = performance.now();
  const isNext = new URLSearchParams(location.search).has("decided");
  const lastMs = new WeakMap<Element, number>();
  const hold = (event: SubmitEvent) => {
    const { target: form, submitter } = event;
    if (event.defaultPrevented || !(form instanceof Element) || form.getAttribute("method") !== "post") return;
    const button = submitter ?? form;
    const before = lastMs.get(button) ?? (isNext && form.matches("form.decide") ? shownMs : -Infinity);
    if (performance.now() - before < SECOND_CLICK_MS) event.preventDefault();
    lastMs.set(button, performance.now());
  };
  addEventListener("submit", hold, { capture: true });
}

// Listeners run in this order, so that the drawer opens only for checked answers.
keepInputs();
checkAnswers();
addEventListener("htmx:afterSwap", () => prepare(document));
showLoading();
openDrawers(refresh);
selectRows();
askFirst();
readKeys();
watchPalette();
closeMenus();
enterOpened();
copyByButtons();
keepNotes();
sendUtc();
keepTimes();
prepare(document);
// A phone shows a part of the row of filters: the middle of it is the chosen one. The page itself stays at its top.
const chosen = document.querySelector(".filter-links [aria-current]");
const { left = 0, right = 0 } = chosen?.getBoundingClientRect() ?? {};
chosen?.closest("ul")?.scrollBy((left + right - innerWidth) / 2, 0);
followEvents();
watchRequest();
holdSecondClick();
