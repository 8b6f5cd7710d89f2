import type { HostSettings } from "../core/host-settings.ts";
import { credentialNameSchema } from "./action-schemas.ts";
import { compile, requestObject, positive } from "./schema-helpers.ts";
import { fromJson, toJson } from "./serializer.ts";
import { retryMembers } from "./retry-settings.ts";
import { CALLS_PER_SECOND_MIN, CALLS_PER_SECOND_MAX } from "../core/limits.ts";
import Type, { type Static, type TSchema } from "typebox";
import { STATUS_CLASSES } from "../core/retry.ts";
import { jsonIn } from "../core/json.ts";

export const PutDefaults = requestObject(
  "PutDefaults",
  "How attempts are made and repeated. What is left out is decided by the server.",
  retryMembers,
  { examples: [{ timeout_ms: 60_000, give_up_on: [401, 422] }] },
);

export const PutHostSettings = requestObject(
  "PutHostSettings",
  "What applies to calls of the account to one host. What is left out is decided by the account's defaults.",
  {
    ...retryMembers,
    max_per_second: Type.Optional(
      Type.Number({
        minimum: CALLS_PER_SECOND_MIN,
        maximum: CALLS_PER_SECOND_MAX,
        description: "Most calls per second that begin; 0.5 means one in two seconds.",
        examples: [10],
      }),
    ),
    max_concurrent: Type.Optional(positive("Most calls at a time, at most the server's own limit per host.", 4)),
    default_credential: Type.Optional(
      Type.String({
        ...credentialNameSchema,
        title: "DefaultCredential",
        description:
          "Name of the credential of calls that name none. It is added for the keys that may use it, where its bounds allow the call and the call does not set its header.",
      }),
    ),
  },
  { examples: [{ max_per_second: 10, max_concurrent: 4 }] },
);

/** Turns a checked body into settings. */
export const hostSettingsFrom = (body: Static<typeof PutHostSettings>): HostSettings => fromJson(PutHostSettings, body);

export const NO_HOST_SETTINGS = hostSettingsFrom({});

/** Settings as JSON; only those that are set. */
export const hostSettingsJson = (settings: HostSettings) => toJson(PutHostSettings, settings);

/**
 * The settings of a host, or of all hosts, in a row. Accepts values beyond the bounds of requests, which may have changed,
 * and members of newer versions: one bad member must not end another one's limit or keep other rows from being read.
 */
const STORED = compile(
  Type.Partial(
    Type.Object({
      timeout_ms: Type.Integer({ minimum: 1 }),
      backoff: Type.Object({ base_ms: Type.Integer({ minimum: 1 }), cap_ms: Type.Integer({ minimum: 1 }) }),
      give_up_on: Type.Array(Type.Union([Type.Integer(), Type.Enum([...STATUS_CLASSES])])),
      max_per_second: Type.Number({ exclusiveMinimum: 0 }),
      max_concurrent: Type.Integer({ minimum: 1 }),
      default_credential: Type.String(),
    } satisfies Record<keyof typeof PutHostSettings.properties, TSchema>),
  ),
);

export function hostSettingsText(settings: HostSettings): string {
  return JSON.stringify(hostSettingsJson(settings));
}

/** Parses the settings in a row; empty if somebody altered the row in the database. */
export function parseHostSettings(text: string): HostSettings {
  const value = jsonIn(text);
  return STORED.accepts(value) ? hostSettingsFrom(value) : NO_HOST_SETTINGS;
}
