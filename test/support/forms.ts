/** The hidden fields of the forms of a page, as a browser sends them. */
export function hiddenIn(html: string): Readonly<Record<string, string>> {
  const inputs = html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
}

/** The text of a page or a part of it, in one line. */
export function textOf(html: string): string {
  return html.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
}

/** What the main part of a page says, without its elements. */
export function wordsOf(html: string): string {
  return (/<main.*<\/main>/s.exec(html)?.[0] ?? "").replaceAll(/<[^>]+>/g, "").replaceAll(/\s+/g, " ");
}

/** Decides by the link of a mail as a browser does, with the form of its page. */
export async function pressLink(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const shown = hiddenIn(await (await fetch(url, { redirect: "manual" })).text());
  const body = new URLSearchParams({ ...shown, ...fields });
  return fetch(url, { method: "POST", redirect: "manual", headers, body });
}
