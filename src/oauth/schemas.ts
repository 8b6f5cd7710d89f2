import Type, { type Static } from "typebox";
import {
  choice,
  dateTime,
  idSchema,
  nameSchema,
  nullable,
  plainText,
  quantity,
  requestObject,
  answerObject,
  shortText,
  shortList,
} from "../api/schema-helpers.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX, OAUTH_REDIRECTS_MAX, URL_CHARS_MAX } from "../core/limits.ts";
import type { AccountClient, NewAccountClient } from "./account-clients.ts";

export const OAuthClientId = idSchema("ocl", "The client id.");

const name = nameSchema("Name of the client, which people see when they connect it.");

const redirectUris = shortList(
  shortText(URL_CHARS_MAX, "A redirect URI.", "https://client.example.com/callback"),
  OAUTH_REDIRECTS_MAX,
  "Where answers to it may go, each compared as a text: https, http on loopback, where any port fits, or a scheme of an app; without a fragment or a user.",
  ["https://client.example.com/callback"],
);

const type = choice(
  ["public", "confidential"],
  "Whether it can keep a secret: a server can, a program on somebody’s machine or in a browser can’t. Both use PKCE.",
  "confidential",
);

export const CreateOAuthClient = requestObject(
  "CreateOAuthClient",
  "A client that people of the account can connect by OAuth.",
  { name, redirect_uris: redirectUris, type },
  {
    examples: [
      { name: "Workflows", redirect_uris: ["https://client.example.com/callback"], type: "confidential" as const },
    ],
  },
);

export type CreateOAuthClient = Static<typeof CreateOAuthClient>;

const members = {
  id: OAuthClientId,
  name,
  redirect_uris: redirectUris,
  type,
  connections: quantity("How many connections it has.", 1),
  created_at: dateTime("When it was added."),
  created_by: plainText("Who added it.", "user:ann@example.com"),
};

const OAuthClientJson = answerObject("OAuthClient", "A client that an owner has added.", members);

export const NewOAuthClientJson = answerObject("NewOAuthClient", "A client that was just added, with its secret.", {
  ...members,
  secret: nullable(
    plainText(
      "The client secret, shown only once; null for a public client.",
      "0f3a51c2de9b4b6f8d7c1e2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e",
    ),
  ),
});

export const OAuthClientListJson = answerObject(
  "OAuthClientList",
  "The clients that the account's owners have added.",
  {
    data: Type.Array(OAuthClientJson, {
      maxItems: OAUTH_CLIENTS_PER_ACCOUNT_MAX,
      description: "The clients, oldest first.",
    }),
  },
);

export function serializeOAuthClient(client: AccountClient): Static<typeof OAuthClientJson> {
  const { id, redirectUris: redirect_uris, isConfidential, connections, createdAt, createdBy } = client;
  return {
    id,
    name: client.name,
    redirect_uris: [...redirect_uris],
    type: isConfidential ? "confidential" : "public",
    connections,
    created_at: createdAt.toISOString(),
    created_by: createdBy,
  };
}

export const serializeNewOAuthClient = ({ client, secret }: NewAccountClient): Static<typeof NewOAuthClientJson> => ({
  ...serializeOAuthClient(client),
  secret,
});
