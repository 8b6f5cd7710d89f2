/** The text of an answer; of one that has no end its beginning, and then nobody listens any more. */
export async function wholeText(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(first?.value);
}
