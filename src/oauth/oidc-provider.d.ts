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

  interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  interface Client {
    readonly clientId: string;
    readonly clientName?: string;
  }

  interface Interaction {
    readonly uid: string;
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
  }

  export const errors: {
    readonly InvalidClient: typeof ProtocolError;
    readonly InvalidClientAuth: typeof ProtocolError;
    readonly InvalidGrant: typeof ProtocolError;
    readonly InvalidTarget: typeof ProtocolError;
    readonly TemporarilyUnavailable: typeof ProtocolError;
  };
}
