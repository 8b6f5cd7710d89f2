import { databaseExists, sizeOfFile } from "../../db/open.ts";
import { type ServerSize, serverSize } from "../accounts/server-size.ts";
import { type Config, type Env, InvalidSettings, readConfig, targetPolicy } from "../config/config.ts";
import { settingNames, SETTINGS, settingTexts } from "../config/settings.ts";
import { describeTargetPolicy } from "../config/target-policy.ts";
import { KEY_FACTS, keyFileFor, loadPresentKey } from "../crypto/master-key.ts";
import { maskText } from "../receipts/masking.ts";
import { withAdminStore } from "./access.ts";

/** The settings that a service would start with, for diagnosis. Contains no secrets. */
interface SettingsReport {
  /** The variables that are set, by name; secrets masked. */
  readonly given: Readonly<Record<string, string>>;
  /** Warnings and the target policy. */
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

/** Validates the settings as a start would. */
export function reportSettings(env: Env): SettingsReport {
  const texts = settingTexts(env);
  const shown = settingNames().flatMap((name) => {
    const { [name]: text } = texts;
    if (text === undefined) return [];
    // What is invalid may be a secret that was pasted into the wrong line.
    const isHidden = SETTINGS[name].isSecret === true || SETTINGS[name].findFault(text) !== null;
    return [[name, isHidden ? "••••" : maskText(text, "public")] as const];
  });
  const given = Object.fromEntries(shown);
  try {
    const config = readConfig(env);
    return { given, notes: [...config.warnings, describeTargetPolicy(targetPolicy(config))], problems: [] };
  } catch (error) {
    if (!(error instanceof InvalidSettings)) throw error;
    return { given, notes: [], problems: error.problems };
  }
}

interface Examined {
  /** Null: the database is on another machine. */
  readonly size: (ServerSize & { readonly path: string }) | null;
  /** The master key of these settings: why no service could start with it, or a warning; both null if it is fine. */
  readonly key: { readonly problem: string | null; readonly warning: string | null };
}

/** Looks at the database of a service. Null: no file yet, or unusable settings. Throws an error for the operator. */
export async function examineDatabase(env: Env, now: Date): Promise<Examined | null> {
  const config = configOrNull(env);
  if (config === null) return null;
  const { database, secretKey, retentionDays } = config;
  const path = database.kind === "file" ? database.path : null;
  if (path !== null && !databaseExists(`file:${path}`)) return null;
  const size =
    path === null ? null : { ...(await serverSize((until) => sizeOfFile(path, until), now, retentionDays)), path };
  const [present, next] = await withAdminStore(env, ({ facts }) =>
    Promise.all([facts.read(KEY_FACTS.present), facts.read(KEY_FACTS.next)]),
  );
  try {
    const keyFile = path === null ? null : keyFileFor(path);
    const { warning } = loadPresentKey({ secretKey, keyFile }, { present, next });
    return { size, key: { problem: null, warning } };
  } catch (error) {
    return { size, key: { problem: error instanceof Error ? error.message : String(error), warning: null } };
  }
}

function configOrNull(env: Env): Config | null {
  try {
    return readConfig(env);
  } catch {
    // `reportSettings` says what is wrong with them.
    return null;
  }
}
