import Type from "typebox";
import { describedOnly, integer } from "./schema-helpers.ts";
import { toJson } from "./serializer.ts";
import {
  ATTEMPT_TIMEOUT_SET_MS_MAX,
  ATTEMPT_TIMEOUT_SET_MS_MIN,
  BACKOFF_BASE_MS_MAX,
  BACKOFF_BASE_MS_MIN,
  BACKOFF_CAP_MS_MAX,
  GIVE_UP_ON_MAX,
} from "../core/limits.ts";
import { type RetrySettings, STATUS_CLASSES, type StatusPattern } from "../core/retry.ts";

const BackoffJson = Type.Refine(
  Type.Object(
    {
      base_ms: integer(
        BACKOFF_BASE_MS_MIN,
        BACKOFF_BASE_MS_MAX,
        "Milliseconds after the first failure, doubled after each further one.",
        1_000,
      ),
      cap_ms: integer(BACKOFF_BASE_MS_MIN, BACKOFF_CAP_MS_MAX, "Most milliseconds, at least base_ms.", 60_000),
    },
    {
      additionalProperties: false,
      description: "Delay between two attempts; a Retry-After replaces it.",
      examples: [{ base_ms: 1_000, cap_ms: 60_000 }],
    },
  ),
  // True if one of them is no number, which is an issue of its own.
  ({ base_ms: base, cap_ms: cap }) => !(cap < base),
  () => "cap_ms must not be less than base_ms.",
);

const [STATUS_MIN, STATUS_MAX] = [300, 599];

function isStatusPattern(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && value >= STATUS_MIN && value <= STATUS_MAX;
  return STATUS_CLASSES.some((one) => one === value);
}

const StatusPatternJson = Type.Refine(
  Type.Unsafe<StatusPattern>(
    describedOnly({
      anyOf: [
        { type: "integer", minimum: STATUS_MIN, maximum: STATUS_MAX },
        { type: "string", enum: [...STATUS_CLASSES] },
      ],
    }),
  ),
  isStatusPattern,
  () => `Must be a status from ${STATUS_MIN} to ${STATUS_MAX}, or one of ${STATUS_CLASSES.join(", ")}.`,
);

/** The retry members of a create and of the settings of a host or account. */
export const retryMembers = {
  timeout_ms: Type.Optional(
    integer(
      ATTEMPT_TIMEOUT_SET_MS_MIN,
      ATTEMPT_TIMEOUT_SET_MS_MAX,
      "Deadline of a whole attempt in milliseconds.",
      60_000,
    ),
  ),
  backoff: Type.Optional(BackoffJson),
  give_up_on: Type.Optional(
    Type.Array(StatusPatternJson, {
      maxItems: GIVE_UP_ON_MAX,
      description: "Statuses after which no attempt follows: numbers, or classes like 4xx.",
      examples: [[401, 422]],
    }),
  ),
};

const RetrySettingsJson = Type.Object(retryMembers);

/** Settings as JSON; only those that are set. */
export const retrySettingsJson = (settings: RetrySettings) => toJson(RetrySettingsJson, settings);
