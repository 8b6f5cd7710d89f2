/** @jsxImportSource hono/jsx */
import { Layout, render } from "./layout.tsx";
import { PageHead } from "./parts.tsx";
import type { PageUser } from "./text.ts";

interface ProblemProps {
  /** HTTP status of the answer. */
  readonly status: number;
  /** Shown as it is: it must not contain untrusted text. */
  readonly message: string;
  readonly requestId: string;
  readonly user?: PageUser | null;
  /** For routes whose pages load no other files. */
  readonly isStandalone?: boolean;
}

const PROBLEM_TITLES: Readonly<Record<number, string>> = {
  403: "Not allowed",
  404: "Page not found",
  405: "Method not allowed",
  409: "Already decided",
  421: "Wrong address",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Temporarily unavailable",
};

/** The page of any error. */
export function problemPage({ status, message, requestId, user = null, isStandalone = false }: ProblemProps): string {
  const title = PROBLEM_TITLES[status] ?? "Request failed";
  return render(
    <Layout title={title} user={user} isStandalone={isStandalone}>
      <PageHead title={title} kind={`Error ${status}`} />
      <p>{message}</p>
      {/* Reloading sends the form again; going back could lose what was typed. */}
      {status === 503 ? (
        <p>Wait a moment and reload this page. If your browser asks whether to send the form again, confirm.</p>
      ) : null}
      {isStandalone ? null : (
        <p>
          <a href="/">Go to the home page</a>
        </p>
      )}
      <p class="foot">{`If you ask for help, include this request ID: ${requestId}`}</p>
    </Layout>,
  );
}
