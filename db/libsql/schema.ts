import { describeTables } from "../tables.ts";
import { SQLITE } from "./columns.ts";

/** The tables with which statements for both databases are built, since both encode values alike. */
export const tables = describeTables(SQLITE);

export const {
  accounts,
  apiKeys,
  keyDays,
  people,
  members,
  sessions,
  welcomeLinks,
  invitations,
  identities,
  signingSeeds,
  callbackHosts,
  hostSettings,
  rules,
  ruleCounts,
  grants,
  credentials,
  credentialRequests,
  oauthArtifacts,
  channels,
  callbackOverlaps,
  pauses,
  rejections,
  actions,
  attempts,
  actionKeys,
  actionMetadata,
  approvalLinks,
  outbox,
  timeline,
  audit,
  bulkJobs,
  bulkResults,
  activity,
  firstSteps,
  facts,
} = tables;
