/** @jsxImportSource hono/jsx */
import { maskedEarlier } from "../contract/masked.ts";
import { earlierLines, type EarlierRejection } from "../domain/rejections.ts";
import { Foreign } from "./foreign.tsx";
import { actorWords } from "./words.ts";

/** What was said about a request before, masked: a line each. */
export function Earlier({ entries }: { readonly entries: readonly EarlierRejection[] }) {
  if (entries.length === 0) return null;
  return (
    <ul class="small">
      {earlierTexts(entries).map((line) => (
        <li>
          <Foreign text={line} />
        </li>
      ))}
    </ul>
  );
}

/** The same as texts, for mails. */
export function earlierTexts(entries: readonly EarlierRejection[]): readonly string[] {
  return earlierLines(maskedEarlier(entries), (actor) => {
    const { name, way } = actorWords(actor);
    return `${name} ${way}`;
  });
}
