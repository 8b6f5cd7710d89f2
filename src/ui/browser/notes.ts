/**
 * Keeps the notes of decisions while a person opens other requests or logs in again. They are in the storage of the tab, each
 * under what its form decides on, and go when that is decided, at a logout, and with the tab.
 */
import { isTouched } from "./morph.ts";

/** Another name whenever the form of `Notes` changes: a tab may be older than this script. */
const NAME = "outgate_notes";
const NOTES_MAX = 50;
/** What a form decides on: each request with its run and digest. */
const ABOUT = "input[name=requests]";
const FIELD = "form.decide textarea[data-person]";

interface Notes {
  /** Whose notes they are: nobody else who logs in here sees them. */
  readonly person: string;
  /** What the form that was sent decides on. */
  readonly sent: string | null;
  readonly texts: readonly (readonly [about: string, text: string])[];
}

export function keepNotes(): void {
  addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement && target.matches(FIELD)) keep(target);
  });
  const elsewhere = new BroadcastChannel(NAME);
  elsewhere.addEventListener("message", () => {
    forget();
    // Nor does the next person at this machine find secrets or a new key in another tab. The documentation is for everybody.
    if (document.getElementById("side") !== null && !isTouched(document.body)) location.replace("/login");
  });
  addEventListener("submit", ({ target, defaultPrevented }) => {
    if (!(target instanceof HTMLFormElement) || defaultPrevented) return;
    const notes = stored();
    if (target.matches("form.decide") && notes !== null) store({ ...notes, sent: formSubject(target) });
    if (target.getAttribute("action") !== "/auth/logout") return;
    forget();
    // When the answer is here: as long as the session has not ended, the login page leads back in.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has its page's origin
    addEventListener("pagehide", () => elsewhere.postMessage(""), { once: true });
  });
  const notes = stored();
  if (notes === null || notes.sent === null) return;
  // An error, as of a database that is away, did nothing: the note is shown again on the way back.
  if (document.querySelector(".problem-page") !== null) return store({ ...notes, sent: null });
  // A page without what was sent says that it did what it was for. One that asks for the password has it in another form.
  const form = [...document.querySelectorAll<HTMLInputElement>(ABOUT)].find(({ value }) => value === notes.sent)?.form;
  if (form?.matches("form.decide") === false) return;
  const texts = form === undefined ? notes.texts.filter(([about]) => about !== notes.sent) : notes.texts;
  store({ ...notes, texts, sent: null });
}

/** Shows the kept notes in the forms of a place, but not in place of what was typed. */
export function showNotes(place: ParentNode): void {
  const notes = stored();
  for (const field of notes === null ? [] : place.querySelectorAll<HTMLTextAreaElement>(FIELD)) {
    const about = formSubject(field.form);
    const [, text] = notes?.texts.find(([other]) => other === about) ?? [];
    if (text === undefined || field.value !== "" || field.dataset["person"] !== notes?.person) continue;
    field.value = text;
    field.closest("details")?.setAttribute("open", "");
  }
}

/** What a page on which something is typed says when its session has ended. */
export function whatIsKept(): string {
  return (stored()?.texts ?? []).length > 0 ? "Your note is kept." : "What you typed is not kept.";
}

function keep({ form, value, dataset: { person = "" } }: HTMLTextAreaElement): void {
  const about = formSubject(form);
  const notes = stored();
  const others = notes?.person === person ? notes.texts.filter(([other]) => other !== about) : [];
  const texts = value === "" ? others : [...others, [about, value] as const];
  store({ person, sent: null, texts: texts.slice(-NOTES_MAX) });
}

function formSubject(form: HTMLFormElement | null): string {
  return form?.querySelector<HTMLInputElement>(ABOUT)?.value ?? "";
}

function stored(): Notes | null {
  try {
    // Safe: nothing else writes it.
    return JSON.parse(sessionStorage.getItem(NAME) ?? "null") as Notes | null;
  } catch {
    return null;
  }
}

function store(notes: Notes): void {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(notes));
  } catch {
    // Without storage, a note lasts as long as its form.
  }
}

function forget(): void {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // There is none.
  }
}
