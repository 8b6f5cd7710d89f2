import { OutgateError } from "../client/transport.ts";
import { visible } from "../observability/terminal.ts";
import { EXIT } from "./io.ts";

/** A change that may have been made although its call failed. */
class Unsure extends Error {
  readonly failure: OutgateError;

  constructor(failure: OutgateError, advice: string) {
    super(advice);
    this.failure = failure;
  }
}

/** Adds advice to the failure of a change, unless it was refused for sure. One refused for its rate may repeat one whose answer was lost. */
export function unsure(advice: string) {
  return (error: unknown): never => {
    if (!(error instanceof OutgateError)) throw error;
    const { code, status } = error;
    const isRefusal = status !== null && status >= 400 && status < 500;
    throw isRefusal && code !== "rate_limited" && code !== "not_outgate" ? error : new Unsure(error, advice);
  };
}

/** The message and exit code for a failed call. Throws any other error. `optionName` names a field for people. */
export function explain(
  error: unknown,
  url: string,
  optionName = (field: string): string => field,
): { readonly message: string; readonly code: number } {
  if (error instanceof Unsure) {
    const { message, code } = explain(error.failure, url, optionName);
    return { message: `${message}\n${visible(error.message, true)}`, code };
  }
  if (!(error instanceof OutgateError)) throw error;
  const problems = error.details.map(({ field, message }) => `${optionName(field) || "body"}: ${message}`);
  if (error.detailsLeftOut > 0) problems.push(`and ${error.detailsLeftOut} more`);
  // A single problem may be the message itself.
  const isSaid = error.details.length === 1 && error.details[0]?.message === error.message;
  const lines = isSaid ? problems : [failureSentence(error, url), ...problems.map((problem) => `  ${problem}`)];
  if (error.code === "internal_error" && error.requestId !== null) lines.push(`  Request id: ${error.requestId}`);
  return { message: visible(lines.join("\n"), true), code: error.code === "timed_out" ? EXIT.timeout : EXIT.failed };
}

function failureSentence({ code, message }: OutgateError, url: string): string {
  if (code === "unreachable") {
    return `${message} Start it with \`npm start\` or \`outgate serve\`, or set OUTGATE_URL to its address.`;
  }
  if (code === "unauthorized") {
    return `${url} does not accept the API key: it is mistyped, revoked, expired, or of another service.`;
  }
  if (code === "not_found" && message === UNKNOWN_PATH) {
    return `Outgate answers at ${url}, but does not have the path. Set OUTGATE_URL to the address of its first page.`;
  }
  if (code === "not_outgate") return `${message} Set OUTGATE_URL to the address of Outgate; it is ${url} now.`;
  return message;
}

/** What the service says of a path that it does not have, as below an OUTGATE_URL with a path of a page. */
const UNKNOWN_PATH = "This path does not exist.";
