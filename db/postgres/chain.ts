import type { PostgresText, SqlValue, Statement } from "../sql/sql.ts";
import { escapeText } from "./text.ts";

/** One statement as it is sent. */
export interface Query {
  /** Of a prepared statement: it says what the text is, so that a pooler can't run another client's under it. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly (SqlValue | readonly (string | null)[])[];
  /** How many statements it consists of. */
  readonly parts: number;
  /** Whether it adds to the timeline. */
  readonly isTold: boolean;
  /** Rows as lists of values instead of objects. */
  readonly rowMode?: "array";
}

/** A text and which of all arguments of the chain each of its own is. */
interface Composed {
  readonly name: string;
  readonly text: string;
  readonly isTold: boolean;
}

/** Texts of chains by the numbers of their statements. There are as many as the store has kinds of writes. */
const composed = new Map<string, Composed>();

/** A write may have as many kinds as a change has events and notifications; beyond this a text is composed anew. */
const COMPOSED_MAX = 2_000;

/**
 * The queries of the statements of a transaction. A statement that depends on the one before (`changed`) becomes part of
 * one query with it, in which it reads the tables as they were before; any other one begins a new query, which sees what
 * those before have written.
 */
export function queriesOf(statements: readonly Statement[]): readonly Query[] {
  const queries: Query[] = [];
  let chain: PostgresStatement[] = [];
  const end = () => {
    if (chain.length > 0) queries.push(queryOf(chain));
    chain = [];
  };
  for (const { sql, args, source } of statements) {
    if (source === undefined) {
      end();
      queries.push({ ...named(sql), values: args.map(valueOf), parts: 1 });
      continue;
    }
    if (!source.text.isChained) end();
    chain.push({ text: source.text, args });
  }
  end();
  return queries;
}

interface PostgresStatement {
  readonly text: PostgresText;
  readonly args: readonly SqlValue[];
}

function queryOf(chain: readonly PostgresStatement[]): Query {
  const key = chain.map(({ text }) => text.id).join(" ");
  const known = composed.get(key) ?? compose(chain.map(({ text }) => text));
  if (composed.size < COMPOSED_MAX) composed.set(key, known);
  const values = chain.flatMap(({ text, args }) =>
    text.args.map(({ at, isList }) => {
      const value = args[at] ?? null;
      return isList ? listOf(value) : valueOf(value);
    }),
  );
  return { ...known, values, parts: chain.length };
}

function compose(chain: readonly PostgresText[]): Composed {
  let before = 0;
  const texts = chain.map(({ parts, args }, at) => {
    const first = before + 1;
    before += args.length;
    return parts
      .map((part) => {
        if (part === "changed") return `(select count(*) from s${at}) > 0`;
        return "text" in part ? part.text : `$${first + part.arg}`;
      })
      .join("");
  });
  const [only = ""] = texts;
  if (texts.length === 1) return named(only);
  const steps = texts.map((text, at) => `s${at + 1} as (${text} returning 1)`);
  const counts = texts.map((_, at) => `(select count(*) from s${at + 1}) as s${at + 1}`);
  return named(`with ${steps.join(", ")} select ${counts.join(", ")}`);
}

/** Hexadecimal characters of a digest in a name, of which PostgreSQL reads 63. */
const NAME_CHARS = 32;

const names = new Map<string, string>();

/** A text with its name and what it adds to. */
export function named(text: string): Composed {
  return { name: nameOf(text), text, isTold: TELLS.test(text) };
}

/** What adds to the timeline. */
export const TELLS = /insert into "?timeline"? /;

function nameOf(text: string): string {
  const name =
    names.get(text) ?? `og_${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, NAME_CHARS)}`;
  if (names.size < COMPOSED_MAX) names.set(text, name);
  return name;
}

export function valueOf(value: SqlValue): SqlValue {
  return typeof value === "string" ? escapeText(value) : value;
}

/** Items of a JSON list as texts; an item that is a list itself stays JSON. */
function listOf(value: SqlValue): readonly string[] | null {
  if (typeof value !== "string") return null;
  // Safe: the store makes these lists itself.
  const items = JSON.parse(value) as readonly unknown[];
  return items.map((item) => escapeText(typeof item === "string" ? item : JSON.stringify(item)));
}
