/** @jsxImportSource hono/jsx */

/** The outlines of all icons, 16 by 16. */
const OUTLINES = {
  approvals: "M2.5 8.5 5.8 12l7.7-8M2.5 3.5h5M2.5 6h3",
  actions: "M2.5 4h11M2.5 8h11M2.5 12h7",
  overview: "M2.5 13.5v-4M6.2 13.5v-8M9.8 13.5V8M13.5 13.5v-11",
  keys: "M10.2 9.3a3.3 3.3 0 1 0-3.5-3.5L2.5 10v3.5H6V12h1.5v-1.5L8.7 9.3M10.7 5.3h.01",
  settings:
    "M2.5 4.5h6m3.5 0h1.5M2.5 11.5H4m3.5 0h6M8.5 4.5a1.75 1.75 0 1 0 3.5 0a1.75 1.75 0 1 0-3.5 0M4 11.5a1.75 1.75 0 1 0 3.5 0a1.75 1.75 0 1 0-3.5 0",
  docs: "M8 4.2C6.5 3 4.5 2.8 2.5 3v9.5c2-.2 4 0 5.5 1.2 1.5-1.2 3.5-1.4 5.5-1.2V3c-2-.2-4 0-5.5 1.2zm0 0v9.5",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zm3.6-1.4 2.9 2.9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  person: "M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8zm-5 5.5c.6-2.2 2.5-3.5 5-3.5s4.4 1.3 5 3.5",
  people:
    "M6 7.5a2.25 2.25 0 1 0 0-4.5 2.25 2.25 0 0 0 0 4.5zm-4.5 5.5c.5-2 2.2-3.2 4.5-3.2s4 1.2 4.5 3.2M10.5 3.2a2.25 2.25 0 0 1 0 4.1M12 9.9c1.3.5 2.2 1.6 2.5 3.1",
  shield: "M8 2.2 13 4v3.8c0 3-2.1 5-5 6-2.9-1-5-3-5-6V4zM5.8 8l1.6 1.6L10.4 6.5",
  server: "M3 4.5h10v7H3zm3 9.5h4M8 11.5V14",
  rules: "M2.5 3h11L9.5 8.2v4.6l-3 -1.5V8.2z",
  up: "m4 10 4-4 4 4",
  down: "m4 6 4 4 4-4",
  right: "m6 4 4 4-4 4",
  back: "m10 4-4 4 4 4",
  copy: "M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z",
  check: "m3 8.5 3.5 3.5L13 4.5",
  warning: "M8 2.5 14 13H2zM8 6.5v3m0 1.8v.01",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zm0-9v3.2l2 1.3",
  pause: "M5.5 3.5v9m5-9v9",
  send: "M2.5 8h10.5M9 4l4 4-4 4",
  retry: "M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.5v3.3H9.7",
  external: "M6 3.5H3v9.5h9.5V10M9 2.5h4.5V7m0-4.5-6 6",
  inbox: "M2.5 9.5 4.5 3h7l2 6.5v3.5h-11zm0 0H6c0 1.2.8 2 2 2s2-.8 2-2h3.5",
  host: "M2.5 3h11v4h-11zm0 6h11v4h-11zM5 5h.01M5 11h.01",
} as const;

export type IconName = keyof typeof OUTLINES;

/** An icon in the colour of its text. Hidden from screen readers, because a word is beside it or its control has a label. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={OUTLINES[name]} />
    </svg>
  );
}

/** The logo: an arrow that passes a gate. */
export function Logo() {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M6.75 2.5v3.2m0 4.6v3.2M2.5 8h10.75M10.5 5.1 13.4 8l-2.9 2.9" />
    </svg>
  );
}
