import type { LinkStore } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type Action, type ApprovalLink, DECISIONS, type Decision } from "../core/action.ts";
import { APPROVAL_LINK_MS, HOUR_MS } from "../core/limits.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Caller } from "../core/roles.ts";
import { isHeldIn, OtherRequest, type Decide } from "../core/changes.ts";
import { type DecisionHistory, NO_HISTORY } from "./facts.ts";
import { isAlreadyDecided } from "./decide.ts";
import type { Recipients } from "./recipients.ts";
import type { ReadHistory } from "./held.ts";

/**
 * Creates the two links of the action's current run, as whole URLs, with their expiry. If it is called again, such as after a
 * crash before the mail was sent, it returns the same links and expiry. The store keeps only their hashes, durably. `baseUrl`: the
 * public URL, without a trailing slash; never from a request's `Host`, which an attacker could choose.
 */
export function createMakeLinks(links: LinkStore, secrets: Pick<Secrets, "approvalToken" | "hash">, baseUrl: string) {
  return async ({ id: actionId, run }: Action, now: Date) => {
    const decisionToken = (decision: ApprovalLink["decision"]) => secrets.approvalToken({ actionId, run, decision });
    const kept = DECISIONS.map((decision) => ({
      actionId,
      run,
      decision,
      hash: secrets.hash(decisionToken(decision)),
    }));
    const expiresAt = await links.keep(kept, new Date(now.getTime() + APPROVAL_LINK_MS));
    return {
      approve: `${baseUrl}/a/${decisionToken("approve")}`,
      reject: `${baseUrl}/a/${decisionToken("reject")}`,
      expiresAt,
    };
  };
}

/** Until when a held action can be decided by its links: they are issued when it is held, and it may end earlier than they do. */
export function decidableUntil(
  linksEnd: Date,
  { expiresAt }: Pick<Action, "expiresAt">,
  ttlHours: number | null,
): Date {
  const linksEndMs = linksEnd.getTime();
  const ttlEndMs = ttlHours === null ? linksEndMs : linksEndMs - APPROVAL_LINK_MS + ttlHours * HOUR_MS;
  return new Date(Math.min(linksEndMs, ttlEndMs, expiresAt?.getTime() ?? linksEndMs));
}

export interface OpenedLink {
  readonly action: Action;
  /** Which of the mail's two links this is. */
  readonly decision: Decision;
  /** Until when it can decide. */
  readonly expiresAt: Date;
  /**
   * False: the run was decided, cancelled or retried, the link has expired, or its recipient may no longer approve. The link
   * then shows only the receipt.
   */
  readonly isLive: boolean;
  /** `NO_HISTORY` if the link is not live. */
  readonly history: DecisionHistory;
  /** Identifies the request, for the form that decides on it; empty if the link is not live. */
  readonly digest: string;
}

interface LinkDecision extends Pick<OpenedLink, "decision"> {
  readonly reason: string | null;
  /** `digest` of the request as it was shown; null: nothing was shown, since opening the link decides. */
  readonly shown: string | null;
  /** The network address of the request. */
  readonly client: string;
}

/**
 * Follows the links of approval mails. The token is the only credential: its holder decides in the name of the address that the
 * mail went to, through the same `approve` and `cancel` as REST and pages.
 */
export function createFollowLink(
  { clock, config, store }: AppContext,
  secrets: Secrets,
  actionService: Readonly<Record<"approve" | "cancel", Decide>> & { readonly actionDigest: (action: Action) => string },
  recipients: Pick<Recipients, "mayMail">,
  readHistory: ReadHistory,
) {
  const { actions, links } = store;
  const open = async (token: string): Promise<OpenedLink | null> => {
    const claimed = secrets.readApprovalToken(token);
    const link = claimed === null ? null : await links.find(claimed);
    if (link === null || !secrets.isOfHash(token, link.hash)) return null;
    const action = await actions.findById(link.actionId);
    if (action === null) return null;
    const { decision } = link;
    const expiresAt = decidableUntil(link.expiresAt, action, config.approvalTtlHours);
    const isOpen = isHeldIn(action, link.run) && clock.now() < link.expiresAt;
    // The recipient may have been removed from the account or from APPROVERS since the mail was sent.
    const isLive = isOpen && (await recipients.mayMail(action.accountId, action.creator, action.notifyEmail ?? ""));
    if (!isLive) return { action, decision, expiresAt, isLive, history: NO_HISTORY, digest: "" };
    const digest = actionService.actionDigest(action);
    return { action, decision, expiresAt, isLive, history: await readHistory(action), digest };
  };
  return {
    /** Reads a link and changes nothing. Null: there is no such link. */
    open,
    /**
     * Decides, unless somebody else was first, and returns the link as it is afterwards. A late decision changes nothing.
     * Null: there is no such link. Throws `OtherRequest` if the request is not the one that was shown.
     */
    async decide(token: string, { decision, reason, shown, client }: LinkDecision): Promise<OpenedLink | null> {
      const opened = await open(token);
      if (opened === null || !opened.isLive) return opened;
      const { action } = opened;
      const operation = decision === "approve" ? "approve" : "cancel";
      if (shown !== null && shown !== opened.digest) throw new OtherRequest(operation, action);
      const { accountId, notifyEmail } = action;
      const email = notifyEmail ?? "";
      const holder = { keyId: null, keyName: email, role: "approver", hold: "none", actor: `email:${email}` } as const;
      const caller: Caller = { accountId, ...holder, client };
      const expected = { run: action.run, isHeld: true, digest: opened.digest };
      try {
        await actionService[operation](caller, action.id, reason, expected);
      } catch (error) {
        if (!isAlreadyDecided(error)) throw error;
      }
      return open(token);
    },
  };
}
