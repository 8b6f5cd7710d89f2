import type { Static } from "typebox";
import type { ExtrasSchema } from "./extras-schema.ts";
import type { RetrySettings } from "./retry-settings.ts";

/** How a body was given, where not as `body`. The column `body` has the JSON, the encoded form, the text or the base64. */
export const BODY_KINDS = ["json", "form", "text", "base64"] as const;

export type BodyKind = (typeof BODY_KINDS)[number];

/**
 * What each member is. A text is in the requester's words: nobody without an account sees it, and requests that look alike may
 * differ in it.
 */
const MEMBERS: Readonly<Record<keyof (typeof ExtrasSchema)["properties"], "text" | "setting">> = {
  bodyKind: "setting",
  reason: "text",
  metadata: "text",
  timeoutMs: "setting",
  backoff: "setting",
  giveUpOn: "setting",
  runAt: "setting",
  delaySeconds: "setting",
  credential: "setting",
};

const KNOWN: ReadonlySet<string> = new Set(Object.keys(MEMBERS));

const TEXTS: ReadonlySet<string> = new Set(
  Object.entries(MEMBERS).flatMap(([name, kind]) => (kind === "text" ? [name] : [])),
);

/**
 * What a create sets beyond the core of an action; a member that it doesn't set is absent. Stored as JSON in one column, null
 * where there is none. It may have members that only another version knows: copy it by `...`, so that they stay.
 */
export type Extras = Readonly<Static<typeof ExtrasSchema>>;

export const NO_EXTRAS: Extras = Object.freeze({});

/** The members that only another version of Outgate knows; null: none. They are kept and shown, and change nothing here. */
export function unknownExtras(extras: Extras): Readonly<Record<string, unknown>> | null {
  const members = extras === NO_EXTRAS ? [] : Object.entries(extras).filter(([name]) => !KNOWN.has(name));
  return members.length === 0 ? null : Object.fromEntries<unknown>(members);
}

/** The extras without those. */
export function withoutUnknown(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => KNOWN.has(name)));
}

/** The texts of a requester about an action, in the order in which people see them. */
export const REQUESTER_TEXTS = ["title", "reason", "metadata"] as const;

export type RequesterTextName = (typeof REQUESTER_TEXTS)[number];

export const REQUESTER_LABELS: Readonly<Record<RequesterTextName, string>> = {
  title: "Requester says",
  reason: "Reason",
  metadata: "Requester notes",
};

/** In the requester's own words: untrusted, and never sent. */
interface RequesterText {
  readonly name: RequesterTextName;
  /** The name of a note; empty: it has none. */
  readonly note: string;
  /** Null: nothing was said. */
  readonly text: string | null;
}

interface Described {
  readonly title: string | null;
  readonly extras: Extras;
}

/** What a requester says of an action. `reason`: why its present run was requested. */
export function requesterTexts({ title, extras }: Described, reason: string | null): readonly RequesterText[] {
  return [
    { name: "title", note: "", text: title },
    { name: "reason", note: "", text: reason },
    ...Object.entries(extras.metadata ?? {}).map(([note, text]) => ({ name: "metadata", note, text }) as const),
  ];
}

export function withoutTexts(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => !TEXTS.has(name)));
}

/** How attempts of an action are made and repeated, as far as its create says; null: not at all. */
export function ownRetrySettings({ timeoutMs, backoff, giveUpOn }: Extras): RetrySettings | null {
  if (timeoutMs === undefined && backoff === undefined && giveUpOn === undefined) return null;
  return { timeoutMs: timeoutMs ?? null, backoff: backoff ?? null, giveUpOn: giveUpOn ?? null };
}

/** The column of these extras. */
export function extrasText(extras: Extras): string | null {
  const text = extras === NO_EXTRAS ? "{}" : JSON.stringify(extras);
  return text === "{}" ? null : text;
}
