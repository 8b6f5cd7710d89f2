import { drawer } from "./drawer.ts";

/** Keeps through an update what a person has typed, chosen or opened, and the problems shown with it. */
export function keepInputs(): void {
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeMorphed: (old: Node, next: Node) =>
      !(old instanceof HTMLFormElement && (isTouched(old) || old.querySelector(".problem") !== null)) &&
      !isLoadedPart(old, next),
    beforeNodeRemoved: (old: Node) => !(old instanceof Element) || !keepsInput(old),
    // The server sends everything folded and nothing chosen. Hidden fields say what a form is for, so they change with the page.
    beforeAttributeUpdated: (name: string, element: Element) => {
      if (name === "aria-current" && element === drawer.below?.opener) return false;
      if (name === "open") return !element.matches("details, dialog");
      const isInput = element.matches("input:not([type=hidden]), textarea, select");
      return !((name === "checked" || name === "value") && isInput);
    },
  });
  Idiomorph.defaults.ignoreActiveValue = true;
}

/** Whether a part has focus or input that would be lost. */
export function isTouched(part: Element): boolean {
  return hasInput(part) || fieldsIn(part).some((input) => input === document.activeElement);
}

export function hasInput(part: Element): boolean {
  return fieldsIn(part).some((input) => "defaultValue" in input && input.value !== input.defaultValue);
}

const fieldsIn = (part: Element) => [
  ...part.querySelectorAll<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>(
    "input:not([type=hidden], [type=checkbox], [type=radio], [type=search]), textarea, select",
  ),
];

/** A part of a body that somebody loaded stays: the server sends the link to it again. It never changes, its id is the action's. */
function isLoadedPart(old: Node, next: Node): boolean {
  if (!(old instanceof Element && next instanceof Element) || old.id !== next.id) return false;
  return old.matches(".body-whole") && !next.matches(".body-whole");
}

/** Keeps a removed part that has input, with a note, but disables sending it. */
function keepsInput(part: Element): boolean {
  if (!isTouched(part)) return false;
  markGone(part);
  return true;
}

export function markGone(part: ParentNode, why?: string): void {
  for (const note of part.querySelectorAll("[data-gone]")) {
    note.removeAttribute("hidden");
    if (why !== undefined) note.textContent = why;
  }
  for (const button of part.querySelectorAll("form[method=post] button")) button.setAttribute("disabled", "");
}
