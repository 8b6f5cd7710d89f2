export function mainPart(): HTMLElement | null {
  return document.getElementById("main");
}

/** Creates an element. Adds strings as text, not HTML. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  ...children: readonly (string | Node)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

/** Calls `act` for each click on an element that the selector finds, or inside one. */
export function onClick(selector: string, act: (found: HTMLElement, event: MouseEvent) => void): void {
  addEventListener("click", (event) => {
    const found = event.target instanceof Element ? event.target.closest<HTMLElement>(selector) : null;
    if (found !== null) act(found, event);
  });
}

/** Focuses an element and scrolls to it. Returns false if there is none. */
export function focus(element: Element | null | undefined): boolean {
  if (!(element instanceof HTMLElement)) return false;
  element.focus();
  element.scrollIntoView({ block: "nearest" });
  return true;
}
