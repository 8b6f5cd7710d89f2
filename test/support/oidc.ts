import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { cookiesIn } from "../http/signed-in.ts";

export const OIDC_CLIENT = { clientId: "outgate", clientSecret: "a client secret of thirty-two chars" } as const;

/** Whom the provider knows, by the name with which they log in there. */
export interface ProviderPerson {
  readonly subject: string;
  readonly email?: string;
  /** Some providers write it as a text. */
  readonly isVerified?: boolean | "false";
}

interface OidcServerOptions {
  readonly redirectUri: string;
  readonly people?: Readonly<Record<string, ProviderPerson>>;
  /** As Google does; the default tells the address at the userinfo endpoint alone. */
  readonly tellsInIdToken?: boolean;
}

/** A real OpenID provider (`oidc-provider`) on loopback, in which people log in by their name. */
export class OidcServer implements AsyncDisposable {
  readonly people: Map<string, ProviderPerson>;
  readonly issuer: string;
  /** How often each of its paths was asked for. */
  readonly asked: string[] = [];
  /** Answered in place of the provider, at every path unless it names one; null: the provider answers. */
  instead: { readonly path?: string; readonly status: number; readonly body?: string } | null = null;
  readonly #server: ReturnType<typeof createServer>;
  readonly #provider: Provider;

  private constructor(server: ReturnType<typeof createServer>, options: OidcServerOptions) {
    this.#server = server;
    this.people = new Map(Object.entries(options.people ?? {}));
    // Safe: it listens on a port.
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#provider = quiet(() => new Provider(this.issuer, this.#settingsOf(options)));
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async open(options: OidcServerOptions): Promise<OidcServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new OidcServer(server, options);
  }

  /** For the environment of a service. */
  env(domains = "example.com"): Readonly<Record<string, string>> {
    return {
      OIDC_ISSUER: this.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT.clientId,
      OIDC_CLIENT_SECRET: OIDC_CLIENT.clientSecret,
      OIDC_ALLOWED_DOMAINS: domains,
    };
  }

  /** What a browser does between our button and our callback, as somebody who logs in there: the address of the callback. */
  async logIn(address: string, name: string): Promise<string> {
    const jar = new Map<string, string>([["who", name]]);
    let next = address;
    for (let hops = 0; hops < 10 && next.startsWith(this.issuer); hops += 1) {
      const cookie = [...jar].map(([key, value]) => `${key}=${value}`).join("; ");
      const answer = await fetch(next, { redirect: "manual", headers: { cookie } });
      for (const each of cookiesIn(answer))
        jar.set(each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1));
      const location = answer.headers.get("location");
      if (location === null) throw new Error(`The provider answered ${answer.status}: ${await answer.text()}`);
      next = new URL(location, next).href;
    }
    return next;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #settingsOf({ redirectUri, tellsInIdToken = false }: OidcServerOptions) {
    const ttl = () => 600;
    return {
      clients: [
        {
          client_id: OIDC_CLIENT.clientId,
          client_secret: OIDC_CLIENT.clientSecret,
          redirect_uris: [redirectUri],
          response_types: ["code" as const],
          grant_types: ["authorization_code"],
        },
      ],
      claims: { openid: ["sub"], email: ["email", "email_verified"] },
      conformIdTokenClaims: !tellsInIdToken,
      features: { devInteractions: { enabled: false } },
      pkce: { required: () => true },
      ttl: { Interaction: ttl, Grant: ttl, Session: ttl, AccessToken: ttl, IdToken: ttl },
      interactions: { url: (_context: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
      findAccount: (_context: unknown, name: string) => {
        const person = this.people.get(name);
        if (person === undefined) return undefined;
        const { subject, email, isVerified = true } = person;
        const claims = { sub: subject, ...(email === undefined ? {} : { email, email_verified: isVerified }) };
        return { accountId: name, claims: () => claims };
      },
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "/"] = (request.url ?? "/").split("?");
    this.asked.push(path);
    const { instead } = this;
    if (instead !== null && (instead.path ?? path) === path) {
      return void response.writeHead(instead.status, { "content-type": "application/json" }).end(instead.body);
    }
    if (!path.startsWith("/interaction/")) return void this.#provider.callback()(request, response);
    const name = /(?:^|; )who=([^;]*)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
    if (name === "refuses") {
      const refusal = { error: "access_denied", error_description: "<b>canary of the provider</b>" };
      return this.#provider.interactionFinished(request, response, refusal);
    }
    const { params } = await this.#provider.interactionDetails(request, response);
    const grant = new this.#provider.Grant({ accountId: name, clientId: String(params["client_id"]) });
    grant.addOIDCScope("openid email");
    const result = { login: { accountId: name }, consent: { grantId: await grant.save() } };
    return this.#provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
}

/** It warns of its quick start while it is made. */
function quiet<Made>(make: () => Made): Made {
  const { warn, info } = console;
  console.warn = console.info = () => {};
  try {
    return make();
  } finally {
    console.warn = warn;
    console.info = info;
  }
}
