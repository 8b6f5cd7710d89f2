import { OutgateError } from "../client/error.ts";
import { EXIT } from "./command.ts";
import { seen } from "./style.ts";

/** A failed call in sentences for a person, with the exit code that it has. Null: it was no call that failed. */
export function explain(error: unknown, url: string): { readonly message: string; readonly code: number } | null {
  if (!(error instanceof OutgateError)) return null;
  const lines = [
    sentenceOf(error, url),
    ...error.details.map(({ field, message }) => `  ${field || "body"}: ${message}`),
  ];
  if (error.code === "internal_error" && error.requestId !== null) lines.push(`  Request id: ${error.requestId}`);
  return { message: seen(lines.join("\n"), true), code: error.code === "timed_out" ? EXIT.timeout : EXIT.failed };
}

function sentenceOf({ code, message }: OutgateError, url: string): string {
  if (code === "unreachable") {
    return `${message} Start it with \`outgate serve\`, or set OUTGATE_URL to where it is.`;
  }
  if (code === "unauthorized") {
    return `The API key is not one that ${url} knows: it is mistyped, revoked, or of another service.`;
  }
  if (code === "not_outgate") return `${message} Set OUTGATE_URL to where Outgate is; it is ${url} now.`;
  return message;
}
