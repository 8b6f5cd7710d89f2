/** @jsxImportSource hono/jsx */
import type { Choice } from "./key-words.ts";

export interface ChoicesProps {
  readonly name: string;
  /** The question. */
  readonly legend: string;
  readonly choices: readonly Choice[];
  /** The value that is chosen already; null: none. */
  readonly chosen: string | null;
  readonly problem?: string | null;
}

/** One of several, each with what it means. */
export function Choices({ name, legend, choices, chosen, problem = null }: ChoicesProps) {
  return (
    <fieldset class="options" aria-describedby={problem === null ? undefined : `${name}-problem`}>
      <legend>{legend}</legend>
      {problem === null ? null : (
        <p id={`${name}-problem`} class="problem small">
          {problem}
        </p>
      )}
      {choices.map(({ value, label, hint }) => (
        <label class="option">
          <input type="radio" name={name} value={value} required checked={value === chosen} />
          <span>
            <b>{label}</b> <span class="quiet small">{hint}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
