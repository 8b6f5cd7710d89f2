import { make, onClick } from "./elements.ts";

const ANSWER_MS = 2_000;

/** The usual label of each copy button. */
const usual = new WeakMap<HTMLElement, string>();

/** Copies a button's text from the page. */
export function copyByButtons(): void {
  onClick("[data-copy-text], [data-copy-near]", (button) =>
    copyText(button.dataset["copyText"] ?? button.previousElementSibling?.textContent ?? "", button),
  );
}

/** Shows the copy buttons if the browser allows copying. */
export function showCopyButtons(place: ParentNode): void {
  // Browsers offer no clipboard on plain HTTP.
  if (!("clipboard" in navigator)) return;
  for (const button of place.querySelectorAll("[data-copy-text], [data-copy-near]")) button.removeAttribute("hidden");
  for (const block of place.querySelectorAll("[data-copy]")) {
    if (block.nextElementSibling?.matches(".copy") === true) continue;
    const text = (block.querySelector("pre") ?? block).textContent;
    const button = make("button", "Copy");
    button.className = "copy";
    button.setAttribute("type", "button");
    button.addEventListener("click", () => copyText(text, button));
    block.after(button);
  }
}

function copyText(text: string, button: HTMLElement): void {
  const isIcon = button.querySelector("svg") !== null;
  const say = (word: string) => {
    if (isIcon) button.title = word;
    else button.textContent = word;
  };
  const answer = (word: string) => () => {
    const before = usual.get(button) ?? (isIcon ? button.title : button.textContent);
    usual.set(button, before);
    say(word);
    button.setAttribute("data-told", word);
    setTimeout(() => {
      say(before);
      button.removeAttribute("data-told");
    }, ANSWER_MS);
  };
  navigator.clipboard.writeText(text).then(answer("Copied"), answer("Copy failed"));
}
