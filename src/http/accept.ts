/** Whether a request asks for JSON rather than for a page (RFC 9110, 12.5.1): it names it, and a page no higher. */
export function prefersJson({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  const json = weightOf(accept, "application/json");
  return json > 0 && json >= weightOf(accept, "text/html");
}

/** Whether it asks for lines of JSON, and for no plain JSON as much. */
export function namesNdjson({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  const lines = weightOf(accept, "application/x-ndjson");
  return lines > 0 && lines >= weightOf(accept, "application/json");
}

/** Whether it names HTML at all, as browsers do and programs do not. */
export function namesHtml({ headers }: Request): boolean {
  return weightOf(headers.get("accept") ?? "", "text/html") > 0;
}

/** Under these everything is for programs, whatever they accept. */
export function isForPrograms(path: string): boolean {
  return /^\/(v1|mcp)(\/|$)/.test(path);
}

/** Whether it takes an answer compressed so: named, and not refused (RFC 9110, 12.5.3). */
export function takesGzip({ headers }: Request): boolean {
  return GZIP.test(headers.get("accept-encoding") ?? "");
}

const GZIP = /(?:^|,)\s*gzip\s*(?!;\s*q=0(?:\.0*)?\s*(?:,|$))(?:[,;]|$)/i;

/** 0 where the type is not named, or refused; `*` names nothing. */
function weightOf(accept: string, type: string): number {
  for (const entry of accept.split(",")) {
    const [name, ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return weight === undefined ? 1 : Number(weight) || 0;
  }
  return 0;
}
