/** A name as targets that ignore case compare it: Go reads `ſ` as `s` and the sign of Kelvin as `k`. */
export function foldName(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : name.normalize("NFKC").toUpperCase().toLowerCase();
}

const ASCII = /^[ -~]*$/;

/**
 * As some targets read the name of a field or parameter: PHP leaves out spaces in front and what follows NUL, and writes `_` for
 * dots, spaces and a bracket that is not closed; Rack and qs leave out brackets around it.
 */
export function otherNames(name: string): readonly string[] {
  if (PLAIN_FIELD.test(name)) return [];
  const [given = ""] = name.replace(/^ +/, "").split("\0", 1);
  const open = given.indexOf("[");
  const end = open > 0 && given.includes("]", open) ? open : given.length;
  const php = given.slice(0, end).replaceAll(/[ .[]/g, "_") + given.slice(end);
  const rack = /^[[\]]*([^[\]]+)\]*$/.exec(name)?.[1] ?? php;
  return [php, rack].filter((other) => other !== name);
}

const PLAIN_FIELD = /^[\w-]+(\[[\w-]*\])*$/;
