import { expect, test } from "bun:test";
import { CreateActionBody } from "../../src/api/action-schemas.ts";
import { REQUESTER_TEXTS } from "../../src/core/action.ts";
import * as limits from "../../src/core/limits.ts";

const text = await Bun.file(new URL("../../docs/extensions.md", import.meta.url)).text();

/** The first row of a table about this member. */
const rowOf = (member: string) => text.split("\n").find((line) => line.startsWith(`| \`${member}\` |`)) ?? "";

/** The texts of a requester that are one string: a new one has its row here. */
const TEXTS = REQUESTER_TEXTS.flatMap((name): [string, number[]][] => {
  const schema: object = CreateActionBody.properties[name];
  return "maxLength" in schema ? [[name, [Number(schema.maxLength)]]] : [];
});

test.each<[member: string, bounds: readonly number[]]>([
  ["form", [limits.FORM_PAIRS_MAX]],
  ...TEXTS,
  ["metadata", [limits.METADATA_NAMES_MAX, limits.METADATA_VALUE_CHARS_MAX]],
  ["run_at", [limits.RUN_AT_AHEAD_MS_MAX / limits.DAY_MS]],
  ["delay_seconds", [limits.DELAY_SECONDS_MAX]],
  ["expires_at", [limits.EXPIRES_AHEAD_MS_MAX / limits.DAY_MS]],
  ["timeout_ms", [limits.ATTEMPT_TIMEOUT_SET_MS_MIN, limits.ATTEMPT_TIMEOUT_SET_MS_MAX]],
  ["backoff", [limits.BACKOFF_BASE_MS_MIN, limits.BACKOFF_BASE_MS_MAX, limits.BACKOFF_CAP_MS_MAX]],
  ["give_up_on", [limits.GIVE_UP_ON_MAX]],
])("docs/extensions.md says how far %s goes", (member, bounds) => {
  // Each of them as often as it is a bound: a stale number may be another bound's.
  const numbers: string[] = rowOf(member).match(/\d[\d,]*/g) ?? [];
  for (const bound of bounds) {
    const at = numbers.indexOf(bound.toLocaleString("en"));
    expect(at, `${bound} in ${rowOf(member)}`).not.toBe(-1);
    numbers.splice(at, 1);
  }
});
