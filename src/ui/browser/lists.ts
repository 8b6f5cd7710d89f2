import { confirm } from "./dialogs.ts";

/** The box that was chosen last; with Shift, the next one takes those between along. */
let lastBox: HTMLInputElement | null = null;

/** Boxes that select rows, and one that selects all. */
export function selectRows(): void {
  addEventListener("click", ({ target, shiftKey }) => {
    const all = document.querySelector("input[data-selects]");
    if (!(target instanceof HTMLInputElement) || !(all instanceof HTMLInputElement) || target.form !== all.form) return;
    const boxes = [...document.querySelectorAll<HTMLInputElement>("tbody input[type=checkbox]")];
    if (target === all) for (const box of boxes) box.checked = all.checked;
    const places = [boxes.findIndex((box) => box === lastBox), boxes.indexOf(target)];
    if (shiftKey && !places.includes(-1)) {
      for (const box of boxes.slice(Math.min(...places), Math.max(...places))) box.checked = target.checked;
    }
    lastBox = target;
    const count = boxes.filter(({ checked }) => checked).length;
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  });

  addEventListener("reset", () => {
    for (const all of document.querySelectorAll<HTMLInputElement>("input[data-selects]")) all.indeterminate = false;
  });
}

/** Lists that save what is chosen. A question of the option is asked first. */
export function saveChoices(): void {
  // With the keyboard, people pass other options on the way to theirs, so they save with the button.
  let isByKeys = false;
  addEventListener("pointerdown", () => (isByKeys = false), true);
  addEventListener(
    "keydown",
    ({ target }) => {
      if (!isSaving(target)) return;
      isByKeys = true;
      saveButton(target)?.removeAttribute("hidden");
    },
    true,
  );

  addEventListener("change", ({ target }) => {
    if (!isSaving(target) || isByKeys) return;
    const save = saveButton(target);
    if (save !== null && !asksFirst(target, save)) target.form?.requestSubmit(save);
  });

  // The button asks for confirmation, too.
  addEventListener("click", (event) => {
    const save = event.target instanceof Element ? event.target.closest("button") : null;
    const list = save?.form?.querySelector<HTMLSelectElement>("select[data-saves]") ?? null;
    if (list !== null && save !== null && asksFirst(list, save)) event.preventDefault();
  });
}

/** Shows the box that selects all, and hides the buttons that a choice presses. */
export function prepareLists(place: ParentNode): void {
  for (const all of place.querySelectorAll("[data-selects]")) all.removeAttribute("hidden");
  for (const list of place.querySelectorAll<HTMLSelectElement>("select[data-saves]")) {
    saveButton(list)?.setAttribute("hidden", "");
  }
}

function isSaving(target: EventTarget | null): target is HTMLSelectElement {
  return target instanceof HTMLSelectElement && target.matches("[data-saves]");
}

function saveButton({ form }: HTMLSelectElement): HTMLButtonElement | null {
  return form?.querySelector("button") ?? null;
}

/** Shows the question of what is chosen; false: there is none. */
function asksFirst(list: HTMLSelectElement, save: HTMLButtonElement): boolean {
  const question = list.selectedOptions[0]?.dataset["question"];
  if (question === undefined) return false;
  save.dataset["question"] = question;
  confirm(save, []).addEventListener("close", () => {
    list.selectedIndex = [...list.options].findIndex(({ defaultSelected }) => defaultSelected);
  });
  return true;
}
