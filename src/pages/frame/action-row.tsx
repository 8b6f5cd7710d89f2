/** @jsxImportSource hono/jsx */
import { awaitsRunAt, isTerminal, nextRetryAt } from "../../core/action.ts";
import { targetMessage } from "../../actions/target-message.ts";
import { Dot, sentence, StatusDot, statusLabel, until, untrusted } from "../../ui/parts.tsx";
import { lateText } from "../../ui/text.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";

interface ActionStatusProps {
  readonly action: SeenAction;
  /** Shows statuses that need nobody without colour, so that the others stand out in a list. */
  readonly isQuiet?: boolean;
}

/** The status of an action that is not paused. If it is being sent again, its code is from an earlier attempt. */
export function ListedStatus({ action, isQuiet = false }: ActionStatusProps) {
  const { status, attempts, result } = action;
  const code = result?.responseCode ?? null;
  if (awaitsRunAt(action)) return <Dot tone="still">Scheduled</Dot>;
  if (status === "pending" && attempts > 0)
    return <Dot tone="busy">{`Retrying${code === null ? "" : ` ${code}`}`}</Dot>;
  const shown = isTerminal(status) ? code : null;
  if (!isQuiet || status === "failed" || status === "awaiting_approval")
    return <StatusDot status={status} code={shown} />;
  return <Dot tone="still">{`${statusLabel(status)}${shown === null ? "" : ` ${shown}`}`}</Dot>;
}

/** Says what comes next or what went wrong. */
export function Note({ action, now }: { readonly action: SeenAction; readonly now: Date }) {
  const { status, dueAt, expiresAt, result } = action;
  if (status === "awaiting_approval") return expiresAt === null ? null : sentence`expires ${until(expiresAt, now)}`;
  const retryAt = nextRetryAt(action);
  if (retryAt !== null) return sentence`again ${until(retryAt, now)}`;
  if (awaitsRunAt(action) && dueAt !== null) return sentence`starts ${until(dueAt, now)}`;
  const late = isTerminal(status) ? lateText(action) : null;
  const failure = status === "failed" ? (result?.lastError ?? null) : null;
  const text = late ?? reasonSaid(action) ?? failure;
  return untrusted(text);
}

/** The target's own words on why it refused; null if it gave none. The body of an interrupted success is no reason. */
export function reasonSaid({ status, result }: SeenAction): string | null {
  return status === "failed" && result?.errorSource === "target" ? targetMessage(result.responseBody) : null;
}

/** Names a request in a list: the requester's title, or else method and path. The action must be masked. */
export function requestTitle(action: SeenAction) {
  const { title, method } = action;
  return (
    <span class="request-name">
      {title === null ? sentence`${<b class="method">{method}</b>} ` : null}
      {untrusted(title ?? shownPath(action))}
    </span>
  );
}

/** Path and query of a masked action. */
export function shownPath({ url, host }: Pick<SeenAction, "url" | "host">): string {
  const start = url.indexOf("//") + 2;
  return url.startsWith(host, start) ? url.slice(start + host.length) : url;
}
