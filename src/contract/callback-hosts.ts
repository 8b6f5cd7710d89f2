import Type, { type Static } from "typebox";
import { type ListedHost, listableHost } from "../domain/callback-host.ts";
import { DomainError } from "../domain/errors.ts";
import { CALLBACK_HOSTS_MAX } from "../domain/limits.ts";
import { compile } from "./check.ts";
import { dateTime, hostSchema } from "./kinds.ts";

const entry = {
  host: hostSchema("Host name; with a port, that port alone, without one the port of the callback's scheme."),
  created_at: dateTime("Since when it is listed."),
};

/** A host to which callbacks of keys with a hold may go. */
export const CallbackHost = Type.Object(entry, {
  title: "CallbackHost",
  description: "A host to which callbacks of keys with a hold may go.",
});
export type CallbackHost = Static<typeof CallbackHost>;

export const CallbackHostList = Type.Object(
  {
    data: Type.Array(CallbackHost, {
      description: `The hosts in the order of the alphabet, at most ${CALLBACK_HOSTS_MAX}.`,
    }),
  },
  { title: "CallbackHostList", description: "The hosts that this account lists for callbacks." },
);
export type CallbackHostList = Static<typeof CallbackHostList>;

export const AddCallbackHost = Type.Object(
  { host: entry.host },
  { title: "AddCallbackHost", additionalProperties: false, description: "The host to be listed." },
);
export const RemoveCallbackHostQuery = Type.Object({ host: entry.host }, { additionalProperties: false });

const ADD = compile(AddCallbackHost);

/** The host of a body, in its normal form. Throws `validation_error`. */
export function checkAddCallbackHost(value: unknown): string {
  if (!ADD.accepts(value)) {
    throw new DomainError("validation_error", "The request has fields that are not valid.", ADD.issues(value));
  }
  return checkCallbackHost(value.host, "validation_error");
}

/** The normal form of a host that somebody has written. Throws the code where it is none. */
export function checkCallbackHost(text: string, code: "validation_error" | "invalid_query"): string {
  const checked = listableHost(text);
  if (checked !== null) return checked;
  const message =
    "Must be a host name or an IP address, with or without a port, like hooks.example.com or 10.0.0.7:8080.";
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message }]);
}

export function callbackHostJson(listed: ListedHost): string {
  return JSON.stringify(serialize(listed));
}

export function callbackHostListJson(listed: readonly ListedHost[]): string {
  return JSON.stringify({ data: listed.map(serialize) });
}

function serialize({ host: name, createdAt }: ListedHost): CallbackHost {
  return { host: name, created_at: createdAt.toISOString() };
}
