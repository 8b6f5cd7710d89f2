import { drawer } from "./drawer.ts";
import { mainPart } from "./elements.ts";
import { isTouched, markGone } from "./morph.ts";
import { whatIsKept } from "./notes.ts";

const STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"];
/** The shortest time between two updates. */
const PAUSE_MS = 1_000;
/** Polling interval without a stream. */
const POLL_MS = 5_000;
const COME_BACK_MS = 10_000;

let isLoading = false;
let isOutdated = false;

/** Reloads the page, and once more if an event arrives meanwhile. */
export async function refresh(): Promise<void> {
  isOutdated = true;
  if (isLoading) return;
  isLoading = true;
  try {
    while (isOutdated) {
      isOutdated = false;
      await load();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  } catch {
    // The service can't be reached. Polling tries again.
  } finally {
    isLoading = false;
  }
}

/** The address of what #main shows. */
function mainAddress(): string {
  return drawer.below?.address ?? location.href;
}

async function load(): Promise<void> {
  if (drawer.below !== null) {
    await htmx.ajax("get", location.href, {
      source: "#drawer",
      target: "#action",
      select: "#action",
      swap: "morph:outerHTML",
    });
  }
  await htmx.ajax("get", mainAddress(), {
    source: "#main",
    target: "#main",
    select: "#main",
    selectOOB: "#side:morph:outerHTML,#stop:morph:outerHTML,#icon:outerHTML",
    swap: "morph:outerHTML",
  });
}

/** Drops answers that are for a page no longer shown. */
export function checkAnswers(): void {
  addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, requestConfig } = event.detail;
    const asked = new URL(requestConfig.path, location.href);
    const { id } = requestConfig.elt;
    const present = new URL(id === "main" ? mainAddress() : location.href);
    const isLeft = asked.pathname !== present.pathname || asked.search !== present.search;
    if ((id === "main" || id === "drawer") && isLeft) {
      // Drops an update of a request that the person has left, which would replace the one they opened.
      event.preventDefault();
      isOutdated = true;
      return;
    }
    const answered = new URL(xhr.responseURL || asked, location.href);
    const isGone = id === "main" && xhr.status === 404;
    if (asked.pathname === answered.pathname && !isGone) return;
    // The session has ended, the action is decided, or it belongs to another account than that of by now.
    event.preventDefault();
    if (!isTouched(document.body)) location.assign(answered);
    else if (isGone) markGone(document.body, "This was deleted, or belongs to another account. Load this page again.");
    else if (answered.pathname !== "/login") markGone(document.body);
    else markGone(document.body, `Your session has ended. Load this page again to log in. ${whatIsKept()}`);
  });
}

let source: EventSource | null = null;
let polling = 0;
let returning = 0;

/** Follows the event stream while the page is visible. */
export function followEvents(): void {
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
  addEventListener("pagehide", rest);
  addEventListener("pageshow", listen);
  addEventListener("htmx:afterRequest", ({ detail: { requestConfig, xhr } }) => {
    if (requestConfig.elt.id === "main") showLost(xhr.status === 0 || xhr.status >= 500);
  });
  listen();
}

/** Says that the page is out of date while neither the stream nor an update gets through: a list of before would look complete. */
function showLost(isLost: boolean): void {
  const notice = document.querySelector<HTMLElement>("#lost");
  if (notice !== null) notice.hidden = !isLost || polling === 0;
}

/** Without a stream. An update that has not come back since the last time counts as lost. */
function poll(): void {
  if (isLoading) showLost(true);
  refresh().catch(() => {});
}

/** Which events the page shows: "all", or the id of its action. */
const follows = mainPart()?.dataset["follows"];

function listen(): void {
  if (follows === undefined || source !== null || document.hidden) return;
  let isNew = true;
  source = new EventSource("/events");
  source.addEventListener("open", () => {
    stopPolling();
    showLost(false);
    // Catches events between loading the page and opening the stream. A reconnected stream has no gap.
    if (isNew) refresh().catch(() => {});
    isNew = false;
  });
  source.addEventListener("error", () => {
    if (polling === 0) polling = setInterval(poll, POLL_MS);
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    // The stream was refused. The session may have ended, so reload the page now.
    refresh().catch(() => {});
    returning = setTimeout(listen, COME_BACK_MS);
  });
  for (const status of STATUSES) source.addEventListener(`action.${status}`, hear);
  source.addEventListener("state", hearState);
}

function hear(event: MessageEvent<string>): void {
  // Safe: our own server wrote it.
  const { data } = JSON.parse(event.data) as { readonly data: { readonly id: string } };
  if (follows === "all" || follows === data.id) refresh().catch(() => {});
}

/** Whose page it is and which requests for credentials wait, as last heard; null before that. Each stream begins with it. */
let state: string | null = null;

function hearState({ data }: MessageEvent<string>): void {
  if (state !== null && state !== data) refresh().catch(() => {});
  state = data;
}

function stopPolling(): void {
  clearInterval(polling);
  polling = 0;
}

/** Stops all requests while the page is hidden. */
function rest(): void {
  source?.close();
  source = null;
  clearTimeout(returning);
  stopPolling();
}
