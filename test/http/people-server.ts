import { sessionIn, SESSION_SECRET } from "./signed-in.ts";
import { openRealServer, type RealServerOptions } from "./real-server.ts";

export type PeopleServer = Awaited<ReturnType<typeof openPeopleServer>>;

type Headers_ = Readonly<Record<string, string>>;

/** What people tests look at. */
export interface PeopleAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  /** The session's cookie as a browser sends it back; empty where none was set. */
  readonly cookie: string;
}

/** Address and password; what a test is not about is the same everywhere. */
export const PASSWORD = "correct horse battery staple";

export const ann = (overrides: Readonly<Record<string, unknown>> = {}) => ({
  email: "ann@example.com",
  password: PASSWORD,
  ...overrides,
});

/** The real server as programs and browsers use it: nothing is followed, no key is sent along. */
export async function openPeopleServer(options: RealServerOptions = {}) {
  const app = await openRealServer({ starts: false, ...options });
  const ask = async (method: string, path: string, init: RequestInit = {}): Promise<PeopleAnswer> => {
    const response = await fetch(app.url + path, { ...init, method, redirect: "manual" });
    const cookie = sessionIn(response);
    return { status: response.status, text: await response.text(), headers: response.headers, cookie };
  };
  return {
    ...app,
    ask,
    get: (path: string, headers: Headers_ = {}) => ask("GET", path, { headers }),
    /** Sends JSON, as a program does. */
    send: (path: string, body: unknown, headers: Headers_ = {}) =>
      ask("POST", path, { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } }),
    /** Sends a form, as one of our own pages and its script do unless `fields` or `headers` say otherwise. */
    form: (path: string, fields: Readonly<Record<string, unknown>>, headers: Headers_ = {}) =>
      ask("POST", path, {
        body: new URLSearchParams(
          Object.fromEntries(
            Object.entries<unknown>({ session_secret: SESSION_SECRET, ...fields }).map(([name, value]) => [
              name,
              String(value),
            ]),
          ),
        ),
        headers: { origin: app.origin, ...headers },
      }),
    /** Signs up and returns the cookie; sign-ups have to be open for it. */
    async signedUp(email = "ann@example.com") {
      const { cookie, text } = await this.send("/auth/signup", ann({ email }));
      const answer: { account: { id: string }; api_key: string } = JSON.parse(text);
      return { cookie, accountId: answer.account.id, key: answer.api_key };
    },
    /** Whether a cookie is somebody's: a page for people shows it. */
    isIn: async (cookie: string) => (await ask("GET", "/login", { headers: { cookie } })).status === 303,
  };
}

/** Code of an error envelope. */
export function codeOf(answer: Pick<PeopleAnswer, "text">): string {
  const { error }: { error: { code: string } } = JSON.parse(answer.text);
  return error.code;
}

/** Fields that an envelope's details name, in the order of the alphabet. */
export function fieldsOf(answer: Pick<PeopleAnswer, "text">): readonly string[] {
  const { error }: { error: { details?: readonly { field: string }[] } } = JSON.parse(answer.text);
  return (error.details ?? []).map(({ field }) => field).toSorted((a, b) => (a < b ? -1 : 1));
}
