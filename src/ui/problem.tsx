/** @jsxImportSource hono/jsx */
import type { ErrorCode } from "../core/domain-error.ts";
import { Copied } from "./controls.tsx";
import { Layout, render } from "./layout.tsx";
import { LinkButton } from "./parts.tsx";
import type { PageUser } from "./text.ts";

interface ProblemProps {
  readonly status: number;
  readonly code: ErrorCode;
  /** What happened. Must not contain untrusted text, because it is shown as it is. */
  readonly message: string;
  readonly requestId: string;
  /** Keeps the navigation for people who are logged in. */
  readonly user?: PageUser | null;
  /** Whether the route's pages load no other files. */
  readonly isStandalone?: boolean;
  /** Whether a token in the path opened the page, of a receipt or an approval mail. */
  readonly isLink?: boolean;
  /** Whether a link that works once led here, and the message says who makes another. */
  readonly isGone?: boolean;
  /** Whether a link can repeat the request: only if a link or the address bar made it. */
  readonly canRetry?: boolean;
}

interface ProblemText {
  readonly title: string;
  /** What to do next; null if the message says it. */
  readonly next: string | null;
}

const SEND_AGAIN = "If your browser asks whether to send the form again, confirm.";

const NOT_ALLOWED: ProblemText = {
  title: "Not allowed",
  next: "You have several accounts: you may have to switch to another one first.",
};

const BY_STATUS: Readonly<Record<number, ProblemText>> = {
  400: { title: "The request is not valid", next: "Go back, correct it and send it again." },
  401: { title: "Log in first", next: "Log in, then open the page again." },
  403: NOT_ALLOWED,
  404: {
    title: "Page not found",
    next: "Check the address. What you are looking for may belong to another account, or may have been deleted.",
  },
  405: {
    title: "This page can’t be opened directly",
    next: "Open the page from the navigation. A form that was sent twice may lead here.",
  },
  409: { title: "No longer possible", next: "Go back and reload the page: it shows the current state." },
  413: { title: "Too large", next: "Shorten what you send, at most 1 MB, and send it again." },
  421: { title: "Wrong address", next: null },
  429: { title: "Too many requests", next: "Wait a minute, then try again." },
  500: {
    title: "Something went wrong",
    next: "Try again. If it happens again, send the request ID below to the operator of this service.",
  },
  503: { title: "Temporarily unavailable", next: `Wait a moment and reload this page. ${SEND_AGAIN}` },
};

/** Texts for codes that say more than their status. */
const BY_CODE: Readonly<Partial<Record<ErrorCode, ProblemText>>> = {
  not_approvable: { title: "Already decided", next: "Open the action to see who decided, and how it ended." },
  not_cancellable: { title: "It can no longer be cancelled", next: "Open the action to see its current state." },
  not_retryable: { title: "It can’t be retried", next: "Open the action to see its current state." },
  too_many_held: { title: "Limit reached", next: "Decide on some of the requests awaiting approval first." },
  too_many_jobs: { title: "Limit reached", next: "Wait for a bulk job to end, or stop one." },
  too_many_keys: { title: "Limit reached", next: "Revoke a key that is no longer used." },
};

const LINK: ProblemText = {
  title: "This link doesn’t work",
  next:
    "Open it again from the message that it came in. If you have an account, log in: " +
    "requests awaiting approval are under Approvals, and every action has its receipt. Otherwise ask the person who sent you the link.",
};

const RETRIED: ReadonlySet<number> = new Set([429, 500, 503]);

/** The page of any error: what happened, what to do, and where to go on. */
export function problemPage(props: ProblemProps): string {
  const { status, message, requestId, user = null, isStandalone = false } = props;
  const { title, next } = problemText(props);
  return render(
    <Layout title={title} user={user} isStandalone={isStandalone}>
      <section class="problem-page">
        <p class="quiet small">{`Error ${status}`}</p>
        <h1>{title}</h1>
        <p>{message}</p>
        {next === null ? null : <p>{next}</p>}
        <div class="buttons">
          <Steps {...props} />
        </div>
        <p class="foot">
          {"If you ask for help, include this request ID: "}
          {isStandalone ? <code>{requestId}</code> : <Copied text={requestId} what="request ID" />}
        </p>
      </section>
    </Layout>,
  );
}

function problemText({ status, code, user = null, isLink = false, isGone = false }: ProblemProps): ProblemText {
  if (isGone) return { title: LINK.title, next: null };
  if (status === 403 && user?.hasOthers !== true) return { title: NOT_ALLOWED.title, next: null };
  if (isLink && status === 404) return LINK;
  return BY_CODE[code] ?? BY_STATUS[status] ?? { title: "Request failed", next: null };
}

/** The next steps, most likely first. A page at another Host has none, because it may not be ours. */
function Steps({ status, code, user = null, isStandalone = false, isLink = false, canRetry = false }: ProblemProps) {
  if (status === 421) return null;
  // An empty address is the page itself, and `?` is the page without a query.
  const own = RETRIED.has(status) ? { href: "", text: "Try again" } : { href: "?", text: "Clear filters" };
  const canHelp = canRetry && (RETRIED.has(status) || code === "invalid_query");
  const retry = canHelp ? (
    <LinkButton href={own.href} look="main">
      {own.text}
    </LinkButton>
  ) : null;
  if (isStandalone && !isLink) return retry;
  const look = canHelp ? "plain" : "main";
  return (
    <>
      {retry}
      <LinkButton href="/approvals" look={look}>
        {user === null ? "Log in" : "Open Approvals"}
      </LinkButton>
      {user === null ? null : <LinkButton href="/actions">All actions</LinkButton>}
      {isLink ? null : <LinkButton href="/docs">Docs</LinkButton>}
    </>
  );
}
