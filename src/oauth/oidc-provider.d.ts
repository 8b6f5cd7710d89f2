/** What we use of the package, which brings no types. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  /** What an adapter stores: JSON. */
  export type Payload = Readonly<Record<string, unknown>>;

  export interface Adapter {
    upsert(id: string, payload: Payload, expiresInSeconds?: number): Promise<void>;
    find(id: string): Promise<Payload | undefined>;
    findByUid(uid: string): Promise<Payload | undefined>;
    findByUserCode(userCode: string): Promise<Payload | undefined>;
    consume(id: string): Promise<void>;
    destroy(id: string): Promise<void>;
    revokeByGrantId(grantId: string): Promise<void>;
  }

  export interface Context {
    type: string;
    body: unknown;
    readonly oidc: { readonly result?: Readonly<Record<string, unknown>> };
  }

  interface Grant {
    readonly jti?: string;
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  export interface Client {
    readonly clientId: string;
    readonly clientName?: string;
    readonly redirectUris?: readonly string[];
    grantTypeAllowed(type: string): boolean;
  }

  export interface Interaction {
    readonly uid: string;
    readonly returnTo: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly result?: Readonly<Record<string, unknown>>;
  }

  export default class Provider {
    constructor(issuer: string, settings: object);
    readonly Client: { find(id: string): Promise<Client | undefined> };
    readonly Grant: new (of: { readonly accountId: string; readonly clientId: string }) => Grant;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    on(event: "server_error", listener: (context: unknown, error: unknown) => void): this;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options?: { readonly mergeWithLastSubmission: boolean },
    ): Promise<string>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options?: { readonly mergeWithLastSubmission: boolean },
    ): Promise<void>;
  }

  /** An error of the protocol, which the client gets as JSON. */
  class ProtocolError extends Error {
    constructor(description?: string);
    readonly error: string;
    readonly error_description?: string;
    readonly statusCode: number;
  }

  export const errors: {
    readonly InvalidClient: typeof ProtocolError;
    readonly InvalidClientAuth: typeof ProtocolError;
    readonly InvalidGrant: typeof ProtocolError;
    readonly InvalidTarget: typeof ProtocolError;
    readonly TemporarilyUnavailable: typeof ProtocolError;
    readonly SessionNotFound: typeof ProtocolError;
    readonly OIDCProviderError: typeof ProtocolError;
  };
}
