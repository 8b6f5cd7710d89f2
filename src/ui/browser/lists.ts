import { confirm } from "./dialogs.ts";

/** The last chosen box. With Shift, the next click also takes the boxes between. */
let lastBox: HTMLInputElement | null = null;

/** Handles the boxes that select rows, and the one that selects all. */
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

  // An update of the list has no count in its words.
  for (const type of ["change", "htmx:afterSettle"]) addEventListener(type, countSelected);
  countSelected();
}

/** Says how many rows are selected, also to those who hear it. */
function countSelected(): void {
  const count = document.querySelectorAll("[name=id]:checked").length;
  for (const place of document.querySelectorAll("[data-selected]")) place.textContent = `${count} selected`;
}

/** Asks before a button with a question of its own. Buttons with a key ask when the key is pressed. */
export function askFirst(): void {
  addEventListener("click", (event) => {
    const { target } = event;
    const button = target instanceof Element ? target.closest<HTMLButtonElement>("button[data-question]") : null;
    if (button === null || button.dataset["key"] !== undefined) return;
    event.preventDefault();
    confirm(button, []);
  });
}
