import type { PutDefaults } from "../client/openapi.ts";
import { ATTEMPT_TIMEOUT_SET_MS_MAX, ATTEMPT_TIMEOUT_SET_MS_MIN } from "../core/limits.ts";
import { type CliCommand, wholeNumber } from "./command.ts";
import { UsageError } from "./io.ts";
import type { StatusPattern } from "../core/retry.ts";

/** Adds the options about how attempts are made and repeated: they set the members of `PutDefaults`. */
export function addRetryOptions(command: CliCommand): CliCommand {
  return command
    .option(
      "--timeout-ms <n>",
      `deadline of an attempt, ${ATTEMPT_TIMEOUT_SET_MS_MIN} to ${ATTEMPT_TIMEOUT_SET_MS_MAX}`,
      wholeNumber("timeout-ms"),
    )
    .option("--backoff <base:cap>", "milliseconds after the first failure, and at most: 1000:60000", backoffIn)
    .option("--give-up-on <list>", "statuses after which no attempt follows: 401,422,5xx; none: an empty text", listIn);
}

/** What is set, in words. */
export function settingsParts({
  timeout_ms: timeoutMs,
  backoff,
  give_up_on: giveUpOn,
}: PutDefaults): readonly string[] {
  return [
    ...(timeoutMs === undefined ? [] : [`timeout ${timeoutMs} ms`]),
    ...(backoff === undefined ? [] : [`backoff ${backoff.base_ms} to ${backoff.cap_ms} ms`]),
    ...(giveUpOn === undefined ? [] : [`gives up on ${giveUpOn.length === 0 ? "nothing" : giveUpOn.join(", ")}`]),
  ];
}

function backoffIn(text: string): PutDefaults["backoff"] {
  const [, base, cap] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (base !== undefined && cap !== undefined) return { base_ms: Number(base), cap_ms: Number(cap) };
  throw new UsageError(`--backoff takes two numbers of milliseconds, like 1000:60000, not ${JSON.stringify(text)}.`);
}

/** Words that are no numbers stay as they are: the service says which ones there are. */
function listIn(text: string): StatusPattern[] {
  const words = text.split(",").map((word) => word.trim());
  // Safe: the service checks each.
  return words
    .filter((word) => word !== "")
    .map((word) => (/^\d{1,9}$/.test(word) ? Number(word) : word) as StatusPattern);
}
