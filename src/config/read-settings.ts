import Type from "typebox";
import Value from "typebox/value";
import { wordsOf } from "./kinds.ts";
import { type SettingName, Settings } from "./settings.ts";

/** The texts of the settings that are set. */
export type Texts = Readonly<Partial<Record<SettingName, string>>>;

/** What stands in the environment: ours only, without outer blanks; an empty text is as good as none. */
export function textsOf(env: Readonly<Record<string, string | undefined>>): Texts {
  const given = settingNames().map((name) => [name, env[name]?.trim() ?? ""] as const);
  return Object.fromEntries(given.filter(([, text]) => text !== ""));
}

/** The values that texts stand for, defaults included, or what is wrong with them, a sentence a setting. */
export function readSettings(texts: Texts): { settings: Settings } | { problems: readonly string[] } {
  const given = settingNames().map((name) => [name, valueOf(name, texts[name])] as const);
  const values = Value.Default(Settings, Object.fromEntries(given.filter(([, value]) => value !== undefined)));
  if (Value.Check(Settings, values)) return { settings: values };
  return { problems: given.flatMap(([name, value]) => problemsOf(name, value)) };
}

/** All names, in the schema's order. */
export function settingNames(): readonly SettingName[] {
  // Safe: the keys of an object literal that nothing adds to.
  return Object.keys(Settings.properties) as SettingName[];
}

/** Our own conversion: typebox's makes 16 of "0x10" and 1 of "true". */
function valueOf(name: SettingName, text: string | undefined): unknown {
  const schema = Settings.properties[name];
  if (text === undefined) return undefined;
  if (Type.IsInteger(schema)) return /^\d{1,15}$/.test(text) ? Number(text) : text;
  if (Type.IsArray(schema)) return text.split(",").map((entry) => entry.trim());
  return text;
}

/** Setting by setting, because typebox stops after eight errors. What stands in it is never said: it may be a secret. */
function problemsOf(name: SettingName, value: unknown): readonly string[] {
  const schema = Settings.properties[name];
  const [error] = value === undefined ? [] : Value.Errors(schema, value);
  if (error === undefined) return [];
  return [`${name} ${FAULTS[error.keyword] ?? error.message}. Allowed: ${wordsOf(schema).allowed}.`];
}

/** By the keyword of the schema that was broken; a refinement says its fault itself. */
const FAULTS: Readonly<Record<string, string>> = {
  type: "is no whole number",
  minimum: "is too small",
  maximum: "is too large",
  enum: "is none of the words that it may be",
};
