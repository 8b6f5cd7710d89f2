import { columnCount, padded, type Paint } from "./terminal.ts";

interface StartFacts {
  readonly version: string;
  /** The address at which people and agents reach the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Where the rows are, without a password. */
  readonly database: string;
  /** The name of this process among those on the same database; null: it is the only one. */
  readonly nodeId: string | null;
  readonly metricsUrl: string | null;
  readonly warnings: readonly string[];
  readonly notices: readonly string[];
}

const LABEL_COLUMNS = 10;

/** Longer lines are harder to read. */
const COLUMNS_MAX = 100;

/** What a start tells a person at a terminal: what runs where, and what the operator should know. */
export function startText(facts: StartFacts, paint: Paint, columns: number): string {
  const { version, baseUrl, database, nodeId, metricsUrl, warnings, notices } = facts;
  const rows = [
    ["Console", baseUrl, "approve, look up, retry"],
    ["API", `${baseUrl}/v1`, `reference: ${baseUrl}/docs/api`],
    ["MCP", `${baseUrl}/mcp`, "for agents"],
    ...(metricsUrl === null ? [] : [["Metrics", metricsUrl, ""]]),
    ["Database", database, ""],
    ...(nodeId === null ? [] : [["Node", nodeId, ""]]),
  ];
  const width = Math.max(...rows.map(([, place = ""]) => columnCount(place)));
  const lines = rows.map(([label = "", place = "", what = ""]) => {
    const head = `  ${paint(padded(label, LABEL_COLUMNS), "grey")}  `;
    const fits = LABEL_COLUMNS + width + columnCount(what) + 6 <= columns;
    const plain = place.startsWith("http") ? paint(place, "blue") : place;
    return what === "" || !fits
      ? `${head}${plain}\n`
      : `${head}${plain}${" ".repeat(width - columnCount(place) + 2)}${paint(what, "grey")}\n`;
  });
  const noted = (label: string) => (text: string) => {
    const wrapped = wrappedAt(text, Math.min(columns, COLUMNS_MAX) - LABEL_COLUMNS - 4);
    return wrapped
      .map((line, at) => `  ${paint(padded(at === 0 ? label : "", LABEL_COLUMNS), "yellow")}  ${line}\n`)
      .join("");
  };
  const notes = [...warnings.map(noted("Warning")), ...notices.map(noted("Note"))];
  const head = `  ${paint(`Outgate ${version}`, "bold")} is running. ${paint("Ctrl-C stops it.", "grey")}\n`;
  return [head, lines.join(""), notes.join("")].map((part) => (part === "" ? "" : `\n${part}`)).join("");
}

/** Wraps the words of a text at a width. A longer word has its own line. */
function wrappedAt(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && columnCount(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
