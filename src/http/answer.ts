const JSON_TYPE = { "content-type": "application/json" } as const;

/** An answer of JSON text. */
export function json(text: string, status = 200, headers?: Readonly<Record<string, string>>): Response {
  return new Response(text, { status, headers: headers === undefined ? JSON_TYPE : { ...JSON_TYPE, ...headers } });
}
