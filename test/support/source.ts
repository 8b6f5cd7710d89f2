/** A source text in two readings of the same length and lines, so that places in one are places in the other. */
export interface Reading {
  /** Without comments. */
  readonly text: string;
  /** Without comments and without the contents of strings, templates and regular expressions. */
  readonly code: string;
}

/** What may stand before a `/` that begins a regular expression and does not divide. */
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+>]|\breturn)\s*$/;
const PATTERN = /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y;
const STRING = /"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?/y;
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
/** Begins nothing and ends nothing: taken at once, since characters one by one take ten times as long. */
const PLAIN = /[^"'`/{}]+/y;
const TEMPLATE_TEXT = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:\$\{|`)/y;

/** Reads TypeScript just far enough to tell code from comments and strings; a parser would be a dependency. */
export function readSource(source: string): Reading {
  let text = "";
  let code = "";
  /** How many braces are open in each `${}` that we are in. */
  const holes: number[] = [];
  const take = (piece: string, kind: "comment" | "string" | "code") => {
    text += kind === "comment" ? blank(piece) : piece;
    code += kind === "code" ? piece : blank(piece);
  };
  const takeTemplate = () => {
    const piece = match(TEMPLATE_TEXT, source, text.length) ?? source.slice(text.length);
    if (piece.endsWith("${")) holes.push(0);
    take(piece, "string");
  };
  while (text.length < source.length) {
    const at = text.length;
    const plain = match(PLAIN, source, at);
    if (plain !== null) {
      take(plain, "code");
      continue;
    }
    const comment = match(COMMENT, source, at);
    const string = match(STRING, source, at) ?? regularExpression(source, at, code);
    const character = source.charAt(at);
    if (comment !== null) take(comment, "comment");
    else if (string !== null) take(string, "string");
    else {
      const hole = holes.pop();
      take(character, "code");
      if (hole !== undefined && !(character === "}" && hole === 0)) holes.push(hole + depthChange(character));
      if (character === "`" || (character === "}" && hole === 0)) takeTemplate();
    }
  }
  return { text, code };
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, " ");
}

function depthChange(character: string): number {
  return Number(character === "{") - Number(character === "}");
}

function match(pattern: RegExp, source: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? null;
}

function regularExpression(source: string, at: number, before: string): string | null {
  return source.charAt(at) === "/" && BEFORE_PATTERN.test(before.slice(-200)) ? match(PATTERN, source, at) : null;
}
