import type { HostSettings } from "../core/host-settings.ts";
import { credentialNameSchema } from "./action-schemas.ts";
import { requestObject, positive } from "./schema-helpers.ts";
import { fromJson, toJson } from "./serializer.ts";
import { retryMembers } from "./retry-settings.ts";
import { CALLS_PER_SECOND_MIN, CALLS_PER_SECOND_MAX } from "../core/limits.ts";
import Type, { type Static } from "typebox";
import { jsonIn } from "../core/json.ts";

export const PutDefaultsBody = requestObject(
  "PutDefaults",
  "How attempts are made and repeated. What is left out is decided by the server.",
  retryMembers,
  { examples: [{ timeout_ms: 60_000, give_up_on: [401, 422] }] },
);

export const PutHostSettingsBody = requestObject(
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
export const hostSettingsFrom = (body: Static<typeof PutHostSettingsBody>): HostSettings =>
  fromJson(PutHostSettingsBody, body);

export const NO_HOST_SETTINGS = hostSettingsFrom({});

/** Settings as JSON; only those that are set. */
export const hostSettingsJson = (settings: HostSettings) => toJson(PutHostSettingsBody, settings);

export function hostSettingsText(settings: HostSettings): string {
  return JSON.stringify(hostSettingsJson(settings));
}

/**
 * Parses the settings in a row. Keeps values beyond the bounds of requests, which may have changed, and leaves out members of
 * newer versions: one of those must not end another one's limit.
 */
export function parseHostSettings(text: string): HostSettings {
  // Safe: `hostSettingsText` wrote it.
  return hostSettingsFrom({ ...(jsonIn(text) as Static<typeof PutHostSettingsBody>) });
}
