import { createAuditService } from "../../src/audit/service.ts";
import type { Oidc } from "../../src/pages/oidc-routes.ts";
import { createPeopleService, type PeopleService } from "../../src/accounts/people.ts";
import { createFirstStepService } from "../../src/accounts/first-steps.ts";
import { createTeamService, type TeamService } from "../../src/accounts/team.ts";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { createBulk } from "../../src/bulk/bulk.ts";
import { createCallbackHostService } from "../../src/accounts/callback-hosts.ts";
import { createKeyService } from "../../src/accounts/keys.ts";
import type { ReadServerSize } from "../../src/accounts/server-size.ts";
import { createSignUpGate } from "../../src/accounts/sign-up-gate.ts";
import { createOwnMailService } from "../../src/accounts/own-mails.ts";
import type { EffectiveSettings } from "../../src/config/config.ts";
import type { Mailer } from "../../src/mail/mailer.ts";
import { createVerifyService } from "../../src/accounts/verify-signature.ts";
import { createSigningService } from "../../src/accounts/signing-secrets.ts";
import { createLinksOf, createFollowLink } from "../../src/approvals/links.ts";
import { createListNotifications } from "../../src/actions/service.ts";
import { createReadReceipt } from "../../src/pages/receipt-routes.ts";
import { trustedProxiesOf, type SignUps } from "../../src/config/values.ts";
import type { Role } from "../../src/core/roles.ts";
import type { AnyElysia } from "elysia";
import type { Guard } from "../../src/http/own-origin.ts";
import { systemIds } from "../../src/core/ids.ts";
import { checkTarget, parsePolicy } from "../../src/config/target-policy.ts";
import { createPasswords } from "../../src/crypto/passwords.ts";
import { type EngineOptions, openEngine } from "../support/engine.ts";
import { anAccount, anApiKey } from "../support/factory.ts";
import { broken } from "../support/promised.ts";
import { KEYS, openStubServer, OWN_ORIGIN } from "./stub-server.ts";
import { wholeText } from "./whole-text.ts";

/** The key of somebody in another account. */
export const STRANGER = "og_stranger_0123456789abcdefghij";

/** With what somebody signs up who may log in again. */
export const SOMEBODY = { email: "somebody@example.com", password: "correct horse battery staple" } as const;

export interface RealServerOptions extends EngineOptions {
  /** Of an account; none unless it is given. */
  readonly rateLimitPerSecond?: number;
  readonly approvalLinks?: "confirm" | "one_click";
  /** Where a browser finds it; any free port when it is left out. */
  readonly port?: number;
  /** Open unless it is given. */
  readonly signUps?: SignUps;
  readonly baseUrl?: string;
  /** None unless they are given. */
  readonly trustedProxies?: readonly string[];
  /** What the page of the server shows; the stub's unless it is given. */
  readonly rulesFor?: () => Promise<EffectiveSettings>;
  /** What the page of the server shows of the database; nothing unless it is given. */
  readonly readSize?: ReadServerSize;
  /** Sends what people mail to themselves; none unless it is given. */
  readonly ownMailer?: Pick<Mailer, "send">;
  /** Checks requests to /mcp; by default those of this machine pass. */
  readonly mcpGuard?: Guard;
  readonly routes?: readonly AnyElysia[];
  /** An identity provider, over the same services; none unless it is given. */
  readonly oidcOf?: (parts: {
    readonly engine: OpenEngine;
    readonly peopleService: PeopleService;
    readonly teamService: TeamService;
  }) => Oidc;
  /** Routes of another module, over the same service. */
  readonly routesOf?: (engine: OpenEngine) => readonly AnyElysia[];
}

type OpenEngine = Awaited<ReturnType<typeof openEngine>>;

export type RealServer = Awaited<ReturnType<typeof openRealServer>>;

/** The real server over the real service and store, with the keys of the stub and a stranger's. */
export async function openRealServer(options: RealServerOptions = {}) {
  const engine = await openEngine(options);
  const { accounts } = engine.store;
  const addKey = (accountId: string, token: string, role: Role) =>
    // What tests are about an agent did not always create itself; `test/http/key-scope.test.ts` has keys that act on their own.
    accounts.addKey(anApiKey({ accountId, name: role, role, scope: "account", hash: engine.secrets.hash(token) }));
  for (const role of ["owner", "approver", "agent", "reader"] as const) {
    await addKey(engine.owner.accountId, KEYS[role], role);
  }
  const stranger = anAccount();
  const place = { table: "accounts", row: stranger.id, column: "sealed_root_secret" };
  const { secrets, clock } = engine;
  await accounts.create({ ...stranger, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place) }, []);
  await addKey(stranger.id, STRANGER, "owner");

  const policy = parsePolicy({ allowedPrivateTargets: [], loopbackAllowed: true, ownOrigins: ["http://127.0.0.1:1"] });
  if ("problems" in policy) throw new Error(policy.problems.join(" "));
  const followLink = createFollowLink({
    ...engine.store,
    secrets,
    clock,
    actionService: engine.actionService,
    recipients: engine.recipients,
    historyOf: engine.historyOf,
  });
  const { isStopped } = engine.activePauses;
  const authenticate = createAuthenticate({ accounts, isStopped, secrets, clock });
  const signUpGate = createSignUpGate({
    accounts,
    paused: engine.activePauses,
    signUps: options.signUps ?? "open",
    clock,
    log: { warn: () => {} },
  });
  const peopleService = createPeopleService({
    people: engine.store.people,
    audit: engine.store.audit,
    // As everywhere, but for what it costs: the real cost has a test of its own.
    passwords: createPasswords({ memoryKib: 8, passes: 1 }),
    secrets,
    clock,
    ids: systemIds,
    signUpGate,
  });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const { bulkService, bulkRunner } = createBulk({ store: engine.store, engine, clock, ids: systemIds, log });
  const baseUrl = options.baseUrl ?? (options.port === undefined ? OWN_ORIGIN : `http://127.0.0.1:${options.port}`);
  const teamService = createTeamService({
    ...engine.store,
    peopleService,
    secrets,
    clock,
    ids: systemIds,
    baseUrl,
    onMail: options.env?.["MAILGUN_API_KEY"] === undefined ? null : engine.mailWaits,
  });
  const ways = {
    teamService,
    ownMails: createOwnMailService({
      ...engine.store,
      mailer: options.ownMailer ?? null,
      secrets,
      clock,
      ids: systemIds,
      baseUrl,
    }),
    oidc: options.oidcOf?.({ engine, peopleService, teamService }) ?? null,
    actionService: engine.actionService,
    pauseOf: engine.pauseOf,
    pauseService: engine.pauseService,
    hostService: engine.hostService,
    channelService: engine.createChannels((url) => checkTarget(policy, url)),
    callbackTests: engine.createCallbackTests((url) => checkTarget(policy, url)),
    signUpGate,
    isStopped,
    auditService: createAuditService(engine.store.audit, clock),
    bulkService,
    feed: engine.feed,
    overviewService: engine.overview,
    firstSteps: createFirstStepService({ ...engine.store, clock: engine.clock }),
    authenticate,
    keyService: createKeyService({
      ...engine.store,
      secrets,
      clock,
      ids: systemIds,
      pauseService: engine.pauseService,
      signUpGate,
      forget: authenticate.forget,
    }),
    peopleService,
    secrets,
    signingService: createSigningService({
      signing: engine.store.signing,
      audit: engine.store.audit,
      signingSecrets: engine.signingSecrets,
      secrets,
      ids: systemIds,
      clock,
    }),
    verifyService: createVerifyService({ ...engine.store, signingSecrets: engine.signingSecrets, clock }),
    callbackHosts: createCallbackHostService({
      audit: engine.store.audit,
      callbackHosts: engine.store.callbackHosts,
      clock,
    }),
    approvalLinks: options.approvalLinks ?? "confirm",
    followLink,
    readReceipt: createReadReceipt({ actions: engine.store.actions, secrets }),
    listNotifications: createListNotifications(engine.store.outbox),
    checkTarget: (url: string) => checkTarget(policy, url),
    receiptUrl: engine.receiptUrl,
    receiptPath: engine.receiptPath,
    clock,
    baseUrl,
    isTrustedProxy: trustedProxiesOf(options.trustedProxies ?? []),
    ...(options.rulesFor === undefined ? {} : { rulesFor: options.rulesFor }),
    ...(options.readSize === undefined ? {} : { readSize: options.readSize }),
    ...(options.mcpGuard === undefined ? {} : { mcpGuard: options.mcpGuard }),
    routes: [...(options.routes ?? []), ...(options.routesOf?.(engine) ?? [])],
    limits: { rateLimitPerSecond: options.rateLimitPerSecond ?? 0, mcpSessionsPerAccount: 20 },
  };
  const { port } = options;
  const app = port === undefined ? openStubServer(ways) : openStubServer(ways, port);
  return {
    ...app,
    engine,
    bulkRunner,
    followLink,
    /** The links of an approval mail, as paths. */
    async linksOf(id: string) {
      const action = await engine.actionService.get(engine.owner, id);
      const links = await createLinksOf({ links: engine.store.links, secrets, baseUrl: "" })(action, clock.now());
      return { approve: links.approve, reject: links.reject };
    },
    resume: peopleService.resume,
    teamService,
    /** As other nodes' sessions are read again. */
    recheckSessions: peopleService.recheckSessions,
    authenticate,
    signUpGate,
    /** The account of the stranger. */
    strangerId: stranger.id,
    /** Sends JSON text, or nothing, and reads JSON. */
    async call(method: string, path: string, body?: string, headers: Readonly<Record<string, string>> = {}) {
      const type: Readonly<Record<string, string>> = body === undefined ? {} : { "content-type": "application/json" };
      const response = await app.ask(path, {
        method,
        headers: { ...type, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      const text = await wholeText(response);
      // Whatever a test is about, its answers are those of the API description.
      const problems = broken({ method, path, status: response.status, headers: response.headers, text });
      if (problems.length > 0) throw new Error(`${method} ${path}: ${problems.join("; ")}`);
      const isJson = response.headers.get("content-type") === "application/json";
      const json = JSON.parse(isJson ? text : "null") as Shown;
      return { status: response.status, text, json };
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await bulkRunner.stop();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The members of answers that tests look at. */
export interface Shown {
  readonly id: string;
  readonly status: string;
  readonly deduplicated?: boolean;
  readonly data: readonly { readonly id: string; readonly type: string; readonly status: string }[];
  readonly next_cursor: string | null;
  readonly secret: string;
  readonly key: string;
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly details?: readonly { readonly field: string; readonly message: string }[];
  };
}
