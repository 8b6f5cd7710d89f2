/** The first action that everybody is shown: the service calls its own health check, which changes nothing. */
export function firstAction(baseUrl: string) {
  return { url: `${baseUrl}/health`, method: "GET" } as const;
}

/** Puts a key into the variable that every command of ours reads; the key is in no history and no list of processes. */
export const ENTER_KEY = "read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY";

/** The option of curl that sends the key as a file (bash, zsh): everyone can list the command lines of a machine. */
export const KEY_HEADER = '-H @<(echo "Authorization: Bearer $OUTGATE_API_KEY")';

/** A create by curl, with the key in `OUTGATE_API_KEY`. */
export function createCall(baseUrl: string, request: object): string {
  return `curl -s ${baseUrl}/v1/actions \\
  ${KEY_HEADER} \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(request)}'`;
}

/** The first action by curl, whose answer is how it ended. */
export function firstActionCall(baseUrl: string): string {
  return createCall(baseUrl, { ...firstAction(baseUrl), sync: true });
}
