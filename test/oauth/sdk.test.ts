import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CLIENT_ID, openRig, REDIRECT, type Rig } from "./rig.ts";

const INFO = { name: "helpful", version: "1" };

/** What a program keeps between its login and its calls, in memory. */
class Keeper {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadataUrl?: string;
  readonly clientMetadata = {
    client_name: "Helpful Client",
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: "none",
  };
  #client: undefined;
  #tokens: undefined;
  #discovery: undefined;
  #verifier = "";
  sentTo: URL | null = null;

  constructor(clientMetadataUrl?: string) {
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client: unknown) {
    this.#client = client as never;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens: unknown) {
    this.#tokens = tokens as never;
  }
  redirectToAuthorization(url: URL) {
    this.sentTo = url;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
  saveDiscoveryState(state: unknown) {
    this.#discovery = state as never;
  }
  discoveryState() {
    return this.#discovery;
  }
  invalidateCredentials(scope: string) {
    if (scope === "all" || scope === "tokens") this.#tokens = undefined;
  }
  /** As if the hour were over. */
  spoilAccessToken() {
    this.#tokens = { ...Object(this.#tokens), access_token: "x".repeat(43) } as never;
  }
}

interface Library {
  transport(url: URL, keeper: Keeper): { finishAuth(code: string, iss?: string): Promise<void> };
  list(transport: object): Promise<readonly string[]>;
}

async function toolsOf(client: Client | FirstClient): Promise<readonly string[]> {
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name);
}

const LIBRARIES: Readonly<Record<string, Library>> = {
  "of revision 2026-07-28": {
    transport: (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider }),
    async list(transport) {
      const client = new Client(INFO);
      await client.connect(transport as StreamableHTTPClientTransport);
      return toolsOf(client);
    },
  },
  "of 2025": {
    transport: (url, authProvider) => new FirstTransport(url, { authProvider }),
    async list(transport) {
      const client = new FirstClient(INFO);
      await client.connect(transport as FirstTransport);
      return toolsOf(client);
    },
  },
};

/** What a person does in their browser where the client has sent them. */
async function consent(rig: Rig, { sentTo }: Keeper): Promise<URLSearchParams> {
  if (sentTo === null) throw new Error("The client has sent its person nowhere.");
  expect(sentTo.searchParams.get("resource")).toBe(rig.mcpUrl);
  const browser = rig.browser();
  return (await browser.follow(await browser.press(await browser.open(sentTo)))).searchParams;
}

/** Is refused, has its person consent, and calls. */
async function logIn(library: Library, rig: Rig, keeper: Keeper): Promise<void> {
  const first = library.transport(new URL(rig.mcpUrl), keeper);
  expect(await library.list(first).catch(() => null)).toBeNull();
  const answer = await consent(rig, keeper);
  await first.finishAuth(answer.get("code") ?? "", answer.get("iss") ?? "");
  expect(await library.list(library.transport(new URL(rig.mcpUrl), keeper))).toContain("create");
}

test.each(Object.entries(LIBRARIES))(
  "the SDK %s logs in, calls, renews its token, and logs in again when it ended",
  async (_, library) => {
    await using rig = await openRig();
    const keeper = new Keeper(CLIENT_ID);
    await logIn(library, rig, keeper);

    keeper.spoilAccessToken();
    keeper.sentTo = null;
    expect(await library.list(library.transport(new URL(rig.mcpUrl), keeper))).toContain("create");
    expect(keeper.sentTo).toBeNull();

    const [key] = await rig.liveKeys();
    await rig.engine.services.keyService.revoke(rig.engine.owner, key?.id ?? "");
    expect(await library.list(library.transport(new URL(rig.mcpUrl), keeper)).catch(() => null)).toBeNull();
    expect(keeper.sentTo).not.toBeNull();
    expect(rig.read).toContain(CLIENT_ID);
  },
);

test.each(Object.entries(LIBRARIES))("the SDK %s registers itself where that is allowed", async (_, library) => {
  await using rig = await openRig({ env: { OAUTH_REGISTRATION: "on" } });
  const keeper = new Keeper();
  await logIn(library, rig, keeper);
  expect(rig.read).toEqual([]);
});

test.each(Object.entries(LIBRARIES))("the SDK %s uses the id and secret that an owner gave it", async (_, library) => {
  await using rig = await openRig();
  const request = { name: "Workflows", redirect_uris: [REDIRECT], type: "confidential" as const };
  const { secret, ...client } = await rig.engine.services.oauthClients.add(rig.engine.owner, request);
  const keeper = new Keeper();
  keeper.saveClientInformation({ client_id: client.id, client_secret: secret, redirect_uris: [REDIRECT] });
  await logIn(library, rig, keeper);
  expect(keeper.sentTo?.searchParams.get("client_id")).toBe(client.id);
  expect(rig.read).toEqual([]);
});
