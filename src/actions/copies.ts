import { METADATA_NAMES_MAX } from "../core/limits.ts";
import type { Action } from "../core/action.ts";

/** The name in the metadata of an action that says of which other it is a copy. */
export const COPY_OF = "copy_of";

/** The metadata of a copy: that of the original, and its id if there is room. */
export function metadataOfCopy({ id, extras }: Pick<Action, "id" | "extras">): Readonly<Record<string, string>> {
  const kept = { ...extras.metadata };
  const hasRoom = COPY_OF in kept || Object.keys(kept).length < METADATA_NAMES_MAX;
  return hasRoom ? { ...kept, [COPY_OF]: id } : kept;
}
