/** A text of which parts are replaced, from its start to its end. */
export class EditedText {
  readonly #text: string;
  #edited = "";
  #kept = 0;

  constructor(text: string) {
    this.#text = text;
  }

  replace(start: number, end: number, by: string): void {
    this.#edited += this.#text.slice(this.#kept, start) + by;
    this.#kept = end;
  }

  toString(): string {
    return this.#kept === 0 ? this.#text : this.#edited + this.#text.slice(this.#kept);
  }
}
