import { make } from "./elements.ts";

/**
 * Asks for confirmation and shows the request again. Focuses the question, so that pressing a key twice doesn't decide. Sends
 * nothing if an update of the page has meanwhile changed what the form is for.
 */
export function confirm(button: HTMLButtonElement, asked: Iterable<Element>): HTMLDialogElement {
  const decides = make("button", ...[...button.childNodes].map((child) => child.cloneNode(true)));
  decides.className = button.className;
  const meant = sentBy(button);
  decides.addEventListener("click", () => {
    if (meant !== null && sentBy(button) === meant) button.form?.requestSubmit(button);
    else showChanged();
  });
  const parts = [...asked].map((part) => copyPart(part));
  const end = make("div");
  end.dataset["end"] = "";
  const dialog = openDialog(
    focusedHeading(button.dataset["question"] ?? ""),
    ...parts,
    end,
    make("div", decides, make("button", "Back"), ...noteFields(button)),
  );
  dialog.classList.toggle("wide", parts.length > 0);
  // Folded parts load in the dialog too.
  htmx.process(dialog);
  return dialog;
}

/** The form's note, which people can also write in the confirmation. */
function noteFields(button: HTMLButtonElement): readonly HTMLTextAreaElement[] {
  const note = button.form?.querySelector("textarea") ?? null;
  if (note === null) return [];
  const copy = make("textarea");
  copy.rows = 1;
  copy.maxLength = note.maxLength;
  copy.value = note.value;
  copy.placeholder = "Add note";
  copy.setAttribute("aria-label", "Note");
  copy.addEventListener("input", () => {
    note.value = copy.value;
    note.dispatchEvent(new Event("input", { bubbles: true }));
  });
  return [copy];
}

/** Where and what a button sends; null if it can't send any more. */
function sentBy({ form, disabled }: HTMLButtonElement): string | null {
  if (form === null || !form.isConnected || disabled) return null;
  // People write the note here.
  return JSON.stringify([form.action, ...[...new FormData(form)].filter(([name]) => name !== "reason")]);
}

function showChanged(): void {
  openDialog(
    focusedHeading("This has changed"),
    make("p", "Nothing was sent, because it has changed since you were asked. Look at it again."),
    make("div", make("button", "Back")),
  );
}

/** A copy without ids, which must be unique on a page. */
function copyPart(part: Element): HTMLElement {
  const copy = make("div", part.cloneNode(true));
  for (const element of copy.querySelectorAll("[id]")) element.removeAttribute("id");
  // The dialog has its own end.
  for (const other of copy.querySelectorAll("form, .hidden-values, .copy, [data-copy][hidden], [data-end]"))
    other.remove();
  for (const card of copy.querySelectorAll(".card")) card.className = "asked";
  return copy;
}

/** A heading that takes the focus, so that Enter presses no button. */
function focusedHeading(text: string): HTMLElement {
  const heading = make("h2", text);
  heading.tabIndex = -1;
  heading.autofocus = true;
  return heading;
}

/** Opens a dialog. Its last part is the buttons, of which each closes it and the first is the main one. */
export function openDialog(heading: HTMLElement, ...parts: readonly HTMLElement[]): HTMLDialogElement {
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
