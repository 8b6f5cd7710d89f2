/** What a URL is, taken apart once by the one parser. */
export interface Target {
  /** ASCII, lower case, no trailing dot, no brackets lost: as `Action.hostname`. */
  readonly hostname: string;
  /** Host name, and the port where it is not the scheme's own. */
  readonly host: string;
}

/** Why no call may go there: a sentence that says what is wrong and which setting, if any, would allow it. */
export interface RefusedTarget {
  readonly refused: string;
}

/** Judges where calls may go (decisions 5, hostile 3) from the text alone; names are judged again at each attempt. */
export interface Targets {
  checkTarget(url: string): Target | RefusedTarget;
}
