/** @jsxImportSource hono/jsx */
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

export interface ProblemProps {
  /** HTTP status of the answer. */
  readonly status: number;
  /** What went wrong and what to do, for people: never what somebody else wrote. */
  readonly message: string;
  /** Finds the request in the log. */
  readonly requestId: string;
  readonly user?: PageUser | null;
  /** In place of a page that stands alone. */
  readonly isAlone?: boolean;
}

const TITLES: Readonly<Record<number, string>> = {
  403: "Not allowed",
  404: "Page not found",
  405: "Not this way",
  421: "Not at this address",
  409: "Already decided",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Not available just now",
};

/** What was typed goes along when the page is loaded again; back in the form it may be gone. */
const LATER = "Wait a moment and load this page again. If the browser asks whether to send the form again, say yes.";

/** Any error, for people. */
export function problemPage({ status, message, requestId, user = null, isAlone = false }: ProblemProps): string {
  const title = TITLES[status] ?? "That did not work";
  return render(
    <Layout title={title} user={user} isAlone={isAlone}>
      <div class="head">
        <p class="quiet small">{`Error ${status}`}</p>
        <h1>{title}</h1>
      </div>
      <p>{message}</p>
      {status === 503 ? <p>{LATER}</p> : null}
      {isAlone ? null : (
        <p>
          <a href="/">Go to the start page</a>
        </p>
      )}
      <p class="foot">{`If you ask for help, name this request: ${requestId}`}</p>
    </Layout>,
  );
}
