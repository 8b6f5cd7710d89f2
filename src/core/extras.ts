import type { Extras, ExtrasSchema } from "./extras-schema.ts";
import type { RetrySettings } from "./retry.ts";

/**
 * The labels of members that are texts of the requester; null: a setting. A text has the same name in the API. It is never
 * sent, nobody without an account sees it, and requests that look alike may differ in it.
 */
const MEMBERS = {
  bodyKind: null,
  reason: "Reason",
  metadata: "Requester notes",
  timeoutMs: null,
  backoff: null,
  giveUpOn: null,
  runAt: null,
  delaySeconds: null,
  credential: null,
} as const satisfies Record<keyof (typeof ExtrasSchema)["properties"], string | null>;

type TextName = {
  [Name in keyof typeof MEMBERS]: (typeof MEMBERS)[Name] extends null ? never : Name;
}[keyof typeof MEMBERS];

const KNOWN: ReadonlySet<string> = new Set(Object.keys(MEMBERS));

const LABELS = Object.fromEntries(Object.entries(MEMBERS).filter(([, label]) => label !== null)) as Readonly<
  Record<TextName, string>
>;

/** The members that are texts, in the order in which people see them. */
export const TEXT_EXTRAS = Object.keys(LABELS) as readonly TextName[];

export const NO_EXTRAS: Extras = Object.freeze({});

/** The members that only another version of Outgate knows; null: none. They are kept and shown, but have no effect here. */
export function unknownExtras(extras: Extras): Readonly<Record<string, unknown>> | null {
  const members = extras === NO_EXTRAS ? [] : Object.entries(extras).filter(([name]) => !KNOWN.has(name));
  return members.length === 0 ? null : Object.fromEntries<unknown>(members);
}

/** The extras without members that only another version knows. */
export function withoutUnknown(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => KNOWN.has(name)));
}

export type RequesterTextName = "title" | TextName;

/** The texts of a requester about an action, in the order in which people see them. */
export const REQUESTER_TEXTS: readonly RequesterTextName[] = ["title", ...TEXT_EXTRAS];

export const REQUESTER_LABELS: Readonly<Record<RequesterTextName, string>> = { title: "Requester says", ...LABELS };

/** A text in the requester's own words: untrusted and never sent. */
interface RequesterText {
  readonly name: RequesterTextName;
  /** The name of a note; empty: it has none. */
  readonly note: string;
  /** Null: nothing was said. */
  readonly text: string | null;
}

type Said = { readonly [Name in RequesterTextName]?: string | Readonly<Record<string, string>> | null };

/** What a requester says about an action. `reason`: why its current run was requested. */
export function requesterTexts(
  { title, extras }: { readonly title: string | null; readonly extras: Extras },
  reason: string | null,
): readonly RequesterText[] {
  const said: Said = { ...extras, title, reason, metadata: extras.metadata ?? {} };
  return REQUESTER_TEXTS.flatMap((name): readonly RequesterText[] => {
    const text = said[name] ?? null;
    if (text === null || typeof text === "string") return [{ name, note: "", text }];
    return Object.entries(text).map(([note, value]) => ({ name, note, text: value }));
  });
}

/** The texts alone, of extras or of the members of a create. */
export function textsIn(members: Pick<Extras, TextName>): Pick<Extras, TextName> {
  const texts: Record<string, unknown> = {};
  for (const name of TEXT_EXTRAS) if (members[name] !== undefined) texts[name] = members[name];
  return texts;
}

export function withoutTexts(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => !Object.hasOwn(LABELS, name)));
}

/** How attempts of an action are made and repeated, as far as its create says; null: it says nothing. */
export function ownRetrySettings({ timeoutMs, backoff, giveUpOn }: Extras): RetrySettings | null {
  if (timeoutMs === undefined && backoff === undefined && giveUpOn === undefined) return null;
  return { timeoutMs: timeoutMs ?? null, backoff: backoff ?? null, giveUpOn: giveUpOn ?? null };
}

/** The text of extras as it is stored. */
export function extrasText(extras: Extras): string | null {
  const text = extras === NO_EXTRAS ? "{}" : JSON.stringify(extras);
  return text === "{}" ? null : text;
}
