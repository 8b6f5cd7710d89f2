/**
 * Makes a statement's text from one changing part, once for each: a text that is built anew is hashed anew wherever it is
 * looked up, and there are seven to an action.
 */
export function textOnce<Part extends string>(build: (part: Part) => string): (part: Part) => string {
  const built = new Map<Part, string>();
  return (part) => {
    const known = built.get(part);
    if (known !== undefined) return known;
    const text = build(part);
    built.set(part, text);
    return text;
  };
}
