/** One testable sentence of the documents. */
export interface Requirement {
  /** Lower-case, dot separated: the document, the place in it, the thing; `spec.action.receipt-url`. */
  readonly id: string;
  readonly section: string;
  readonly sentence: string;
  /** The issue that builds it; absent = it holds now, so a test must say so. */
  readonly later?: number;
}

const MARK = /^later (\d+): /;

/**
 * The rows of one section of a document, id by id. A sentence that begins "later 4: " belongs to issue 4: whoever
 * builds it takes the mark off and writes the test (the gate refuses a test for a marked row).
 */
export function section(name: string, rows: Readonly<Record<string, string>>): readonly Requirement[] {
  return Object.entries(rows).map(([id, text]) => {
    const issue = MARK.exec(text)?.[1];
    if (issue === undefined) return { id, section: name, sentence: text };
    return { id, section: name, sentence: text.replace(MARK, ""), later: Number(issue) };
  });
}
