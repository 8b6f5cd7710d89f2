import { curlSample, quotableJson } from "./code-samples.ts";

/** The first action that everybody is shown: the service calls its own health check, which changes nothing. */
export function firstAction(baseUrl: string) {
  return { url: `${baseUrl}/health`, method: "GET" } as const;
}

/** Puts a key into the variable that every command of ours reads; the key is in no history and no list of processes. */
export const ENTER_KEY = "read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY";

/** A create by curl. */
export function createCall(baseUrl: string, request: object): string {
  const json = quotableJson(JSON.stringify(request));
  return curlSample({ method: "POST", url: `${baseUrl}/v1/actions`, body: { json } });
}

/** The first action by curl, whose answer is how it ended. */
export function firstActionCall(baseUrl: string): string {
  return createCall(baseUrl, { ...firstAction(baseUrl), sync: true });
}
