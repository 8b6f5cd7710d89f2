const JSON_TYPE = "application/json";

/** An answer of JSON text. */
export function json(text: string, status = 200, headers?: Readonly<Record<string, string>>): Response {
  return new Response(text, { status, headers: { "content-type": JSON_TYPE, ...headers } });
}
