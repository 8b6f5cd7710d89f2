import type { ReadStream } from "node:tty";

/** Longer than any key. */
const LINE_CHARS_MAX = 1_024;

const CONTROL = { interrupt: "\u0003", end: "\u0004", backspace: "\u0008", clear: "\u0015", delete: "\u007f" } as const;

/** A line that a person types in a terminal that shows none of it. */
export class HiddenLine {
  #text = "";

  /** Takes what was typed. Undefined: the line goes on; null: it was given up. */
  type(typed: string): string | null | undefined {
    for (const character of typed) {
      if (character === "\r" || character === "\n") return this.#text;
      if (character === CONTROL.interrupt) return null;
      if (character === CONTROL.end) return this.#text === "" ? null : this.#text;
      if (character === CONTROL.backspace || character === CONTROL.delete) this.#text = this.#text.slice(0, -1);
      else if (character === CONTROL.clear) this.#text = "";
      else if (this.#text.length < LINE_CHARS_MAX) this.#text += character;
    }
    return undefined;
  }
}

/** Asks for a line that the terminal doesn't show; null: the person gave up. */
export async function askHidden(
  question: string,
  input: ReadStream,
  write: (text: string) => void,
): Promise<string | null> {
  const line = new HiddenLine();
  const decoder = new TextDecoder();
  write(question);
  input.setRawMode(true);
  try {
    return await new Promise((resolve) => {
      const onData = (chunk: Uint8Array) => {
        const answer = line.type(decoder.decode(chunk, { stream: true }));
        if (answer === undefined) return;
        input.off("data", onData);
        resolve(answer);
      };
      input.on("data", onData);
      input.once("end", () => resolve(null));
    });
  } finally {
    input.setRawMode(false);
    input.pause();
    write("\n");
  }
}
