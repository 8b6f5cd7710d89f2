import type { KeyService } from "../accounts/keys.ts";
import type { CallbackHostService } from "../accounts/callback-hosts.ts";
import type { CallbackTestService } from "../accounts/callback-test.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import type { OwnMailService } from "../accounts/own-mails.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { ReadServerSize } from "../accounts/server-size.ts";
import type { SignUpGate } from "../accounts/sign-up-gate.ts";
import type { SigningService } from "../accounts/signing-secrets.ts";
import type { TeamService } from "../accounts/team.ts";
import type { VerifyService } from "../accounts/verify-signature.ts";
import type { CreateRules } from "../actions/create-schema.ts";
import type { ExportActions } from "../actions/export.ts";
import type { ActionService, ListNotifications } from "../actions/service.ts";
import type { FollowLink } from "../approvals/links.ts";
import type { AuditService } from "../audit/audit.ts";
import type { BulkService } from "../bulk/service.ts";
import type { ChannelService } from "../channels/channels.ts";
import type { EffectiveSettings } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { PauseOf } from "../core/pause.ts";
import { type Caller, viewerOf } from "../core/roles.ts";
import type { Authenticate } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Feed } from "../events/feed.ts";
import type { OverviewService } from "../events/overview.ts";
import type { HostService } from "../hosts/hosts.ts";
import type { ApiOperation } from "../http/openapi.ts";
import type { Log } from "../observability/log.ts";
import type { PauseService } from "../pauses/pauses.ts";
import type { CredentialService } from "../credentials/service.ts";
import type { CredentialRequestService } from "../credentials/requests.ts";
import type { CredentialTestService } from "../credentials/try.ts";
import type { GrantService } from "../grants/grants.ts";
import type { RuleService } from "../rules/service.ts";
import type { GuideGroup } from "./docs/guides.ts";
import type { OAuthClientService } from "../oauth/account-clients.ts";
import type { OAuthService } from "../oauth/service.ts";
import type { Oidc } from "./oidc-routes.ts";
import type { ReadReceipt } from "./receipt-routes.ts";
import { createFlash, createSessions, type PersonOf } from "../http/session.ts";
import { checkFilters } from "../api/list-schemas.ts";
import { NAV_FAILING_MS } from "../core/limits.ts";
import { maskedPause } from "../receipts/masked-action.ts";
import type { NavBadges } from "../ui/text.ts";

export interface PageNeeds extends CreateRules {
  readonly actionService: ActionService;
  readonly auditService: AuditService;
  readonly authenticate: Authenticate;
  readonly bulkService: BulkService;
  readonly callbackHosts: CallbackHostService;
  readonly callbackTests: CallbackTestService;
  readonly channelService: ChannelService;
  readonly exportActions: ExportActions;
  readonly feed: Pick<Feed, "open">;
  readonly firstSteps: FirstStepService;
  readonly followLink: FollowLink;
  readonly hostService: HostService;
  readonly keyService: KeyService;
  readonly listNotifications: ListNotifications;
  /** Null: clients of /mcp need a key. */
  readonly oauth: OAuthService | null;
  readonly oauthClients: OAuthClientService;
  readonly oidc: Oidc | null;
  readonly overviewService: Pick<OverviewService, "read">;
  readonly ownMails: OwnMailService;
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly peopleService: PeopleService;
  readonly readReceipt: ReadReceipt;
  readonly readSize: ReadServerSize;
  readonly signingService: SigningService;
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy" | "isOperator" | "requireOperator">;
  readonly teamService: TeamService;
  readonly verifyService: VerifyService;
  readonly pauseOf: PauseOf;
  /** Whether an account is stopped: its people can read, but not change anything. */
  readonly isStopped: (accountId: string) => boolean;
  /** The server's settings that this caller can see. */
  readonly settingsFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly receiptPath: (actionId: string) => string;
  readonly grantService: Pick<GrantService, "list" | "listNamed" | "end">;
  readonly ruleService: RuleService;
  readonly credentialService: CredentialService;
  readonly credentialTests: CredentialTestService;
  readonly credentialRequests: CredentialRequestService;
  readonly secrets: Pick<Secrets, "newToken" | "open" | "seal">;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly baseUrl: string;
  readonly version: string;
  readonly approvalLinks: "confirm" | "one_click";
  /** The documentation; the first guide is the page /docs. */
  readonly guides: readonly GuideGroup[];
  /** For the API reference. */
  readonly operations: () => readonly ApiOperation[];
  /** Aborted when the service stops. */
  readonly draining: AbortSignal;
}

export type PageDeps = ReturnType<typeof createPageDeps>;

/** What pages are made with: also the sessions, forms and cookies of people. */
export function createPageDeps(needs: PageNeeds) {
  const sessions = createSessions(needs);
  // Without the numbers of the navigation.
  const sessionOf = withStop(sessions.personOf, needs);
  return { ...needs, ...sessions, sessionOf, personOf: withNavigation(sessionOf, needs), flash: createFlash(needs) };
}

/** Adds what stops the whole account to the person of a page, also of one that answers a form or an error. */
function withStop(personOf: PersonOf, { pauseOf }: PageNeeds): PersonOf {
  return async (context) => {
    const person = await personOf(context);
    if (person === null) return null;
    // No key and no host: only what covers all of them.
    const stop = maskedPause(
      pauseOf({ accountId: person.caller.accountId, keyId: "", host: "" }),
      viewerOf(person.role),
    );
    return stop === null ? person : { ...person, stop };
  };
}

/** Adds what the navigation shows to the person of a page. Forms and streams don't need it. */
function withNavigation(personOf: PersonOf, deps: PageNeeds): PersonOf {
  return async (context) => {
    const person = await personOf(context);
    if (person === null || context.request.method !== "GET") return person;
    const [badges, accounts] = await Promise.all([badgesOf(deps, person.caller), deps.teamService.accountsOf(person)]);
    // One account without a name has nothing to tell.
    if (accounts.length === 1 && accounts[0]?.name === null) return { ...person, badges };
    const isCurrent = (accountId: string) => accountId === person.caller.accountId;
    return { ...person, badges, accounts: accounts.map((one) => ({ ...one, isCurrent: isCurrent(one.accountId) })) };
  };
}

/** All are bounded counts over an index: they cost the same in a table of any size. */
async function badgesOf({ actionService, credentialRequests, clock }: PageNeeds, caller: Caller): Promise<NavBadges> {
  const createdAfter = new Date(clock.now().getTime() - NAV_FAILING_MS);
  const [waiting, failing, asked] = await Promise.all([
    actionService.counts(caller, { ...checkFilters({}), statuses: ["awaiting_approval"] }),
    actionService.counts(caller, { ...checkFilters({}), statuses: ["failed"], createdAfter }),
    credentialRequests.pending(caller),
  ]);
  const none = { count: 0, isMore: false };
  const held = waiting.counts[0] ?? none;
  return { waiting: { ...held, count: held.count + asked.length }, failing: failing.counts[0] ?? none };
}
