import { type CallFacts, Undecidable } from "./facts.ts";

/** A constant that a condition compares with. */
export type Literal = bigint | string;

/** What a request needs so that a rule can apply: one of the values read must compare with one of the literals. */
export interface Need {
  /** Identifies `read`: needs with the same name and comparison are looked up together. */
  readonly name: string;
  /** Returns nothing, or throws `Undecidable`, if the value is unknown; then the rule itself decides. */
  readonly read: (facts: CallFacts) => readonly Literal[];
  readonly compares: keyof typeof COMPARE;
  readonly literals: readonly Literal[];
}

export const COMPARE = {
  "==": (one, other) => one === other,
  "!=": (one, other) => one !== other,
  "<": (one, other) => one < other,
  "<=": (one, other) => one <= other,
  ">": (one, other) => one > other,
  ">=": (one, other) => one >= other,
} satisfies Record<string, (one: Literal, other: Literal) => boolean>;

/** All needs that compare the same value in the same way: their places among all needs, by literal. */
interface Column extends Pick<Need, "read" | "compares"> {
  readonly places: Map<Literal, number[]>;
}

/** The needs of all rules. Each value is read once for all of them, so that a rule that doesn't match costs next to nothing. */
export class Needs {
  readonly #columns = new Map<string, Column>();
  /** The place of each rule's first need, and then the end of the last rule's. */
  readonly #starts = [0];

  constructor(rules: readonly (readonly Need[])[]) {
    let place = 0;
    for (const needs of rules) {
      for (const need of needs) {
        this.#add(need, place);
        place += 1;
      }
      this.#starts.push(place);
    }
  }

  #add({ name, read, compares, literals }: Need, place: number): void {
    const key = `${compares} ${name}`;
    const column = this.#columns.get(key) ?? { read, compares, places: new Map<Literal, number[]>() };
    this.#columns.set(key, column);
    for (const literal of literals) {
      const places = column.places.get(literal) ?? [];
      column.places.set(literal, places);
      places.push(place);
    }
  }

  /** Tells whether a request has, or may have, what the rule with this index needs. Reads nothing until a rule has needs. */
  metBy(facts: CallFacts): (rule: number) => boolean {
    let met: Uint8Array | null = null;
    return (rule) => {
      const end = this.#starts[rule + 1] ?? 0;
      for (let place = this.#starts[rule] ?? 0; place < end; place += 1) {
        met ??= this.#met(facts);
        if (met[place] === 0) return false;
      }
      return true;
    };
  }

  #met(facts: CallFacts): Uint8Array {
    const met = new Uint8Array(this.#starts.at(-1) ?? 0);
    for (const column of this.#columns.values()) {
      for (const places of placesMet(column, facts)) for (const place of places) met[place] = 1;
    }
    return met;
  }
}

/** Whether a request surely lacks this need. */
export function isUnmet({ read, compares, literals }: Need, facts: CallFacts): boolean {
  const values = valuesRead(read, facts);
  return values.length > 0 && !literals.some((literal) => values.some((value) => COMPARE[compares](value, literal)));
}

function placesMet({ read, compares, places }: Column, facts: CallFacts): Iterable<readonly number[]> {
  const values = valuesRead(read, facts);
  if (values.length === 0) return places.values();
  if (compares === "==") return values.map((value) => places.get(value) ?? []);
  const holds = COMPARE[compares];
  return [...places].flatMap(([literal, some]) => (values.some((value) => holds(value, literal)) ? [some] : []));
}

function valuesRead(read: Need["read"], facts: CallFacts): readonly Literal[] {
  try {
    return read(facts);
  } catch (error) {
    if (error instanceof Undecidable) return [];
    throw error;
  }
}
