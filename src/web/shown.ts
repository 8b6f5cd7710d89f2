import { maskedAction, maskedWith } from "../contract/masked.ts";
import { maskUrl } from "../domain/mask.ts";
import type { Action } from "../domain/action.ts";
import type { Viewer } from "../domain/roles.ts";
import { sentUrl } from "../domain/sent-url.ts";
import { prettyPrint } from "./json-text.ts";

/** An action as people may see it: masked, and its URL as it is sent. Every page begins with it (hostile 6 and 7). */
export function shown(action: Action, viewer: Viewer): Action {
  return maskedWith(maskedAction(action, viewer), { url: maskUrl(sentUrl(action.url), viewer) });
}

/** What of a shown URL stands behind its host. */
export function pathOf({ url, host }: Pick<Action, "url" | "host">): string {
  return url.slice(url.indexOf("//") + "//".length + host.length);
}

/** What a target answered, as text. */
export interface ShownAnswer {
  readonly kind: "JSON" | "Text" | "Bytes";
  /** Null: bytes are not shown. */
  readonly text: string | null;
}

/** An answer as it is stored (decisions 4): a JSON value is set out, text is text, and of bytes there is nothing to see. */
export function shownAnswer(json: string): ShownAnswer {
  if (json.startsWith('{"encoding":"base64"')) return { kind: "Bytes", text: null };
  if (!json.startsWith('"')) return { kind: "JSON", text: prettyPrint(json) };
  const text: unknown = JSON.parse(json);
  return { kind: "Text", text: String(text) };
}
