/**
 * A URL as it is sent: the parser's reading of it, with the host in its ASCII form, so that no letter can pass for
 * another, and without the fragment, which no target ever sees (hostile 3).
 */
export function sentUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  parsed.hash = "";
  return parsed.href;
}
