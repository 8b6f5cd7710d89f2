/** @jsxImportSource hono/jsx */
import type { Unusual } from "../domain/unusual.ts";
import { Chip } from "./parts.tsx";

const WORDS: Readonly<Record<Unusual, string>> = {
  deletes: "Deletes something",
  new_host: "First call to this host",
};

/** What to look at twice, in words. */
export function UnusualChips({ unusual }: { readonly unusual: readonly Unusual[] }) {
  if (unusual.length === 0) return null;
  return (
    <p class="chips">
      {unusual.map((kind) => (
        <Chip tone="wait">{WORDS[kind]}</Chip>
      ))}
    </p>
  );
}
