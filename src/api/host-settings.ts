import { type HostSettings, type HostSettingsRow, NO_HOST_SETTINGS } from "../core/host-settings.ts";
import { credentialNameSchema } from "./action-schemas.ts";
import { plainText, dateTime, compile, requestObject, answerObject, positive } from "./schema-helpers.ts";
import { retryMembers, retrySettingsFrom, retrySettingsJson } from "./retry-settings.ts";
import { CALLS_PER_SECOND_MIN, CALLS_PER_SECOND_MAX, HOST_SETTINGS_MAX } from "../core/limits.ts";
import { STATUS_CLASSES } from "../core/retry-settings.ts";
import Type, { type Static } from "typebox";

const limitMembers = {
  max_per_second: Type.Optional(
    Type.Number({
      minimum: CALLS_PER_SECOND_MIN,
      maximum: CALLS_PER_SECOND_MAX,
      description: "Most calls per second that begin; 0.5 means one in two seconds.",
      examples: [10],
    }),
  ),
  max_concurrent: Type.Optional(positive("Most calls at a time, at most the server's own limit per host.", 4)),
};

const credentialMembers = {
  default_credential: Type.Optional(
    Type.String({
      ...credentialNameSchema,
      title: "DefaultCredential",
      description:
        "Name of the credential of calls that name none. It is added for the keys that may use it, where its bounds allow the call and the call does not set its header.",
    }),
  ),
};

export const PutDefaults = requestObject(
  "PutDefaults",
  "How attempts are made and repeated. What is left out is decided by the server.",
  retryMembers,
  { examples: [{ timeout_ms: 60_000, give_up_on: [401, 422] }] },
);

export const SettingsJson = answerObject(
  "Settings",
  "What the account sets for calls to every host; only what is set.",
  retryMembers,
);

export const PutHostSettings = requestObject(
  "PutHostSettings",
  "What applies to calls of the account to one host. What is left out is decided by the account's defaults.",
  { ...retryMembers, ...limitMembers, ...credentialMembers },
  { examples: [{ max_per_second: 10, max_concurrent: 4 }] },
);

export type PutHostSettings = Static<typeof PutHostSettings>;

export const HostSettingsJson = answerObject("HostSettings", "What applies to calls of the account to one host.", {
  host: plainText("The host, with its port unless that is the scheme's default.", "api.example.com"),
  ...retryMembers,
  ...limitMembers,
  ...credentialMembers,
  updated_at: dateTime("When it was set."),
  updated_by: plainText("Who set it.", "key:owner"),
});

export type HostSettingsJson = Static<typeof HostSettingsJson>;

export const HostSettingsListJson = answerObject(
  "HostSettingsList",
  "The settings of hosts, and those of the account for all hosts.",
  {
    data: Type.Array(HostSettingsJson, {
      description: `The hosts with settings, in alphabetical order; at most ${HOST_SETTINGS_MAX}.`,
    }),
    defaults: SettingsJson,
  },
);

/** A body that was checked, as settings. */
export function hostSettingsFrom(body: PutHostSettings): HostSettings {
  const { max_per_second: maxPerSecond = null, max_concurrent: maxConcurrent = null } = body;
  return {
    ...retrySettingsFrom(body),
    maxPerSecond,
    maxConcurrent,
    defaultCredential: body.default_credential ?? null,
  };
}

/** Only what is set. */
export function hostSettingsJson({
  maxPerSecond,
  maxConcurrent,
  defaultCredential,
  ...settings
}: HostSettings): PutHostSettings {
  return {
    ...retrySettingsJson(settings),
    ...(maxPerSecond !== null && { max_per_second: maxPerSecond }),
    ...(maxConcurrent !== null && { max_concurrent: maxConcurrent }),
    ...(defaultCredential !== null && { default_credential: defaultCredential }),
  };
}

export function serializeHostSettings({ host, settings, updatedAt, updatedBy }: HostSettingsRow): HostSettingsJson {
  return { host, ...hostSettingsJson(settings), updated_at: updatedAt.toISOString(), updated_by: updatedBy };
}

/**
 * A row holds what is set for a host or for all of them. Without the bounds of requests, which may have been others when it was
 * written, and with members that only a newer version knows: a limit must not end because of its neighbour.
 */
const STORED = compile(
  Type.Object({
    timeout_ms: Type.Optional(Type.Integer({ minimum: 1 })),
    backoff: Type.Optional(
      Type.Object({ base_ms: Type.Integer({ minimum: 1 }), cap_ms: Type.Integer({ minimum: 1 }) }),
    ),
    give_up_on: Type.Optional(Type.Array(Type.Union([Type.Integer(), Type.Enum([...STATUS_CLASSES])]))),
    max_per_second: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    max_concurrent: Type.Optional(Type.Integer({ minimum: 1 })),
    default_credential: Type.Optional(Type.String()),
  }),
);

/** The text of a row. */
export function hostSettingsText(settings: HostSettings): string {
  return JSON.stringify(hostSettingsJson(settings));
}

/** The settings in the text of a row; none if it was altered in the database. */
export function parseHostSettings(text: string): HostSettings {
  try {
    const value: unknown = JSON.parse(text);
    return STORED.accepts(value) ? hostSettingsFrom(value) : NO_HOST_SETTINGS;
  } catch {
    return NO_HOST_SETTINGS;
  }
}
