import type { KeyService } from "../accounts/keys.ts";
import type { CallbackHostService } from "../accounts/callback-hosts.ts";
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
import type { Caller } from "../core/roles.ts";
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
import type { GrantService } from "../grants/grants.ts";
import type { RuleService } from "../rules/service.ts";
import type { GuideGroup } from "./docs/guides.ts";
import type { OAuthClientService } from "../oauth/account-clients.ts";
import type { OAuthService } from "../oauth/service.ts";
import type { Oidc } from "../oidc/oidc.ts";
import type { ReadReceipt } from "../receipts/read-receipt.ts";

export interface PageNeeds extends CreateRules {
  readonly actionService: ActionService;
  readonly auditService: AuditService;
  readonly authenticate: Authenticate;
  readonly bulkService: BulkService;
  readonly callbackHosts: CallbackHostService;
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
  readonly signUpGate: SignUpGate;
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
