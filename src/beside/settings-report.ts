import { InvalidSettings, readConfig } from "../config.ts";
import { textsOf } from "../config/read-settings.ts";
import type { SettingName } from "../config/settings.ts";
import { maskText } from "../domain/mask.ts";
import { describePolicy } from "../outbound/policy.ts";
import { policyOf } from "../policy.ts";

/** What a service that is started here would run with, for a person who looks for what is wrong. Holds no secret. */
export interface SettingsReport {
  /** What the environment sets, by name; secrets as dots. */
  readonly given: Readonly<Record<string, string>>;
  /** Sentences on what follows from the settings. */
  readonly notes: readonly string[];
  /** Why a start would be refused. */
  readonly problems: readonly string[];
}

const SECRETS: ReadonlySet<SettingName> = new Set([
  "SECRET_KEY",
  "BOOTSTRAP_API_KEY",
  "DATABASE_AUTH_TOKEN",
  "MAILGUN_API_KEY",
  "METRICS_TOKEN",
]);

/** Reads the settings as a start would, and says what it finds instead of starting. */
export function reportSettings(env: Readonly<Record<string, string | undefined>>): SettingsReport {
  const texts: Readonly<Record<string, string>> = textsOf(env);
  const secret: ReadonlySet<string> = SECRETS;
  const given = Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, secret.has(name) ? "••••" : maskText(text, "public")]),
  );
  try {
    const config = readConfig(env);
    return { given, notes: [...config.warnings, describePolicy(policyOf(config))], problems: [] };
  } catch (error) {
    if (error instanceof InvalidSettings || error instanceof Error) {
      return { given, notes: [], problems: error.message.split("\n- ").slice(1) };
    }
    throw error;
  }
}
