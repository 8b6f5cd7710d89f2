import { onClick } from "./elements.ts";

const palette = document.getElementById("palette");
const field = document.getElementById("palette-text");

/** Opens the palette, which finds pages and actions. Returns whether the page has one. */
export function openPalette(): boolean {
  if (!(palette instanceof HTMLDialogElement) || !(field instanceof HTMLInputElement)) return false;
  if (!palette.open) palette.showModal();
  field.select();
  htmx.trigger(field, "palette", {});
  return true;
}

function found(): readonly Element[] {
  return [...document.querySelectorAll("#found [role=option]")];
}

/** Chooses the entry for Enter. The focus stays in the field, which tells screen readers the entry. */
function choose(next: Element | undefined): void {
  for (const item of found()) item.ariaSelected = String(item === next);
  if (next === undefined) field?.removeAttribute("aria-activedescendant");
  else field?.setAttribute("aria-activedescendant", next.id);
  next?.scrollIntoView({ block: "nearest" });
}

/** Moves through the entries, opens the palette by its button and closes it by a press outside. */
export function watchPalette(): void {
  addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    if (target.id === "found") choose(found()[0]);
  });

  palette?.addEventListener("keydown", (event) => {
    const items = found();
    const at = items.findIndex((item) => item.ariaSelected === "true");
    if (event.key === "Enter") {
      const link = items[at];
      if (link instanceof HTMLAnchorElement) location.assign(link.href);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      choose(items[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), items.length - 1)]);
    } else if (event.key === "Escape" && palette instanceof HTMLDialogElement) {
      // A search field would use the first Escape to empty itself.
      palette.close();
    } else return;
    event.preventDefault();
  });

  onClick("[data-open=palette]", (_button, event) => {
    if (openPalette()) event.preventDefault();
  });
  palette?.addEventListener("click", ({ target }) => {
    if (target === palette && palette instanceof HTMLDialogElement) palette.close();
  });
}
