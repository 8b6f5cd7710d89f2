import { auditOf } from "../core/audit.ts";
import type { Credential } from "../core/credential.ts";
import {
  type AskedCredential,
  type CredentialRequest,
  type ListedRequests,
  type CredentialRequestStore,
  type ListedCredentialRequest,
  type RequestNotice,
  statusOfRequest,
} from "../core/credential-request.ts";
import { DomainError, TooEarly, notFound } from "../core/domain-error.ts";
import {
  CREDENTIAL_DECLINED_MS,
  CREDENTIAL_REQUEST_MS,
  CREDENTIAL_REQUEST_TOLD_MAX,
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
} from "../core/limits.ts";
import { hostOf } from "../core/notification.ts";
import { authorize, type Caller, hasScope } from "../core/roles.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { recipientsOf, type ToldDeps } from "./alerts.ts";
import { type AskCredentialBody, askedFrom } from "./request-schemas.ts";
import type { CreateCredential } from "./schemas.ts";
import type { CredentialService } from "./service.ts";

interface CredentialRequestDeps extends ToldDeps, Pick<AppContext, "clock" | "ids"> {
  readonly requests: CredentialRequestStore;
  readonly credentialService: Pick<CredentialService, "add">;
  /** Called when one was asked for or answered. */
  readonly onChanged: (accountId: string) => void;
}

/** Every use case of requests for credentials: agents ask, owners fill in the secret or decline, and nobody else decides. */
export type CredentialRequestService = ReturnType<typeof createCredentialRequestService>;

export function createCredentialRequestService(deps: CredentialRequestDeps) {
  const { requests, credentialService, onWaiting, onChanged, clock, ids } = deps;

  /** To the owners, who alone may answer, and to channels. */
  const noticesOf = async (accountId: string, now: Date): Promise<readonly RequestNotice[]> => {
    const told = (await recipientsOf(deps, accountId)).slice(0, CREDENTIAL_REQUEST_TOLD_MAX);
    return told.map((one, at) => ({
      id: ids.row(now),
      host: hostOf(one),
      message: { ...one, event: `credential_requested:${at}` },
    }));
  };

  const find = async (caller: Caller, id: string): Promise<ListedCredentialRequest> => {
    authorize(caller, "read");
    const found = await requests.find(caller.accountId, id);
    if (found === null || (hasScope(caller.role) && found.keyId !== caller.keyId)) {
      throw notFound("request for a credential");
    }
    return found;
  };

  return {
    find,

    /** Newest first, one more than `limit` says that there are more. An agent sees its own. */
    async list(
      caller: Caller,
      { limit, ...page }: Pick<ListedRequests, "status" | "before" | "limit">,
    ): Promise<readonly ListedCredentialRequest[]> {
      authorize(caller, "read");
      const keyId = hasScope(caller.role) ? caller.keyId : null;
      return requests.list(caller.accountId, { ...page, keyId, now: clock.now(), limit: limit + 1 });
    },

    /** The newest of the caller's own key. */
    async own({ accountId, keyId }: Caller, limit: number): Promise<readonly ListedCredentialRequest[]> {
      return keyId === null
        ? []
        : requests.list(accountId, { keyId, status: null, now: clock.now(), before: null, limit });
    },

    /** Those that wait for an owner, oldest first. An agent sees its own. */
    async pending(caller: Caller): Promise<readonly ListedCredentialRequest[]> {
      authorize(caller, "read");
      const all = await requests.pending(caller.accountId, clock.now());
      return hasScope(caller.role) ? all.filter(({ keyId }) => keyId === caller.keyId) : all;
    },

    /**
     * Asks for a credential, or returns the request of the same key for the same host that is open, or that was declined within
     * `CREDENTIAL_DECLINED_MS`. Throws `validation_error`, `too_many_held`, and `TooEarly` beyond the number of a day.
     */
    async ask(
      caller: Caller,
      body: AskCredentialBody,
    ): Promise<{ readonly request: ListedCredentialRequest; readonly isNew: boolean }> {
      authorize(caller, "create");
      const { accountId, keyId, actor: createdBy } = caller;
      if (keyId === null) throw new DomainError("forbidden", "Only keys ask for credentials. Add one instead.");
      const now = clock.now();
      const request: CredentialRequest = {
        id: ids.credentialRequest(now),
        accountId,
        keyId,
        ...askedFrom(body),
        reason: body.reason,
        createdAt: now,
        createdBy,
        expiresAt: new Date(now.getTime() + CREDENTIAL_REQUEST_MS),
        decision: null,
        decidedAt: null,
        decidedBy: null,
        decisionReason: null,
        credential: null,
      };
      const audited = { kind: "credential_requested", subject: request.id, detail: { host: request.host } } as const;
      const declinedSince = new Date(now.getTime() - CREDENTIAL_DECLINED_MS);
      const notices = await noticesOf(accountId, now);
      const asked = await requests.ask(request, declinedSince, notices, auditOf(caller, audited, now));
      if (asked.kind !== "written" && asked.kind !== "matched") throw refusalOf(asked);
      const isNew = asked.kind === "written";
      if (isNew) {
        for (const { host, message } of notices) onWaiting(message.kind, accountId, host);
        onChanged(accountId);
      }
      return { request: await find(caller, asked.kind === "matched" ? asked.id : request.id), isNew };
    },

    /**
     * Adds a credential that the asking key may use. Throws `not_found`, `not_approvable` where nobody can answer any more, and
     * what `CredentialService.add` throws.
     */
    async grant(caller: Caller, id: string, body: CreateCredential): Promise<Credential> {
      authorize(caller, "manage");
      const request = await open(caller, id);
      const { keyId, keyRole, host } = request;
      // An owner's key may use every credential, and no credential lists it.
      const asking = keyRole === null || !hasScope(keyRole) ? [] : [keyId];
      const keys = [...new Set([...(body.keys ?? []), ...asking])];
      return credentialService.add(caller, { ...body, keys }, async (credential, audit) => {
        const { name } = credential;
        const audited = { kind: "credential_request_granted", subject: id, detail: { host, name } } as const;
        const outcome = await requests.grant(id, credential, audit, auditOf(caller, audited, credential.createdAt));
        if (outcome === "gone") throw notOpen(await find(caller, id), clock.now());
        onChanged(caller.accountId);
        return outcome;
      });
    },

    /** Throws `not_found`, and `not_approvable` where nobody can answer any more. */
    async decline(caller: Caller, id: string, reason: string | null): Promise<ListedCredentialRequest> {
      authorize(caller, "manage");
      const { host } = await open(caller, id);
      const { accountId, actor: by } = caller;
      const at = clock.now();
      const audited = { kind: "credential_request_declined", subject: id, detail: { host } } as const;
      const isDeclined = await requests.decline({ accountId, id, at, by, reason }, auditOf(caller, audited, at));
      if (!isDeclined) throw notOpen(await find(caller, id), at);
      onChanged(accountId);
      return find(caller, id);
    },
  };

  async function open(caller: Caller, id: string): Promise<ListedCredentialRequest> {
    const request = await find(caller, id);
    const now = clock.now();
    if (statusOfRequest(request, now) !== "pending") throw notOpen(request, now);
    return request;
  }
}

function notOpen(request: ListedCredentialRequest, now: Date): DomainError {
  const status = statusOfRequest(request, now);
  const why = status === "cancelled" ? "cancelled, since its key has ended" : status;
  return new DomainError("not_approvable", `This request is ${why} and can't be answered any more.`);
}

function refusalOf(asked: Extract<AskedCredential, { kind: "full" | "daily" }>): DomainError {
  if (asked.kind === "daily") {
    // 403 and not 429, which would mean to try again in a second.
    return new TooEarly(
      "forbidden",
      `This key has asked for ${CREDENTIAL_REQUESTS_PER_DAY_MAX} credentials within 24 hours. It may ask again from ${asked.retryAt.toISOString()}; an owner can add a credential at any time.`,
      asked.retryAt,
    );
  }
  const [whose, count] =
    asked.of === "key"
      ? ["This key", CREDENTIAL_REQUESTS_PER_KEY_MAX]
      : ["This account", CREDENTIAL_REQUESTS_PENDING_MAX];
  return new DomainError(
    "too_many_held",
    `${whose} has ${count} requests for credentials that nobody has answered. Wait until an owner answers some.`,
  );
}
