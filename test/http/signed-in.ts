import { createWelcomeLink } from "../../src/accounts/welcome-links.ts";
import type { BrowserContext, Page } from "playwright-core";
import { hiddenIn } from "../support/forms.ts";
import type { RealServer } from "./real-server.ts";

export const ANN = "ann@example.com";

/** What the storage of every browser of these tests holds for us. */
export const SESSION_SECRET = "5e".repeat(32);

export const ANN_PASSWORD = "correct horse battery";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** The first person of the owner's account, in a browser. */
export async function signedIn(app: RealServer) {
  const { store, secrets, clock } = app.engine;
  return entered(app, `/welcome/${await createWelcomeLink({ ...store, secrets, clock })}`, { email: ANN });
}

/** Somebody who was invited with this role and has a password of Ann's, in a browser. */
export async function joined(app: RealServer, role: string, email = `${role}@example.com`) {
  const { link } = (await app.call("POST", "/v1/invitations", { email, role })).json;
  return entered(app, new URL(link).pathname);
}

/** The id of a person of the owner's account; empty where nobody there has the address. */
export async function personOf(app: RealServer, email: string): Promise<string> {
  const { data } = (await app.call("GET", "/v1/people")).json;
  return data.find((one) => one["email"] === email)?.id ?? "";
}

async function entered(app: RealServer, path: string, fields: Readonly<Record<string, string>> = {}) {
  const body = new URLSearchParams({ ...fields, password: ANN_PASSWORD, session_secret: SESSION_SECRET }).toString();
  const headers = { ...FORM, origin: app.origin };
  return browserOf(app, sessionIn(await fetch(app.url + path, { method: "POST", redirect: "manual", headers, body })));
}

/** A browser with the cookie of a session: what its storage holds, pages and forms. */
export function browserOf(app: RealServer, cookie: string) {
  const context = (path: string, init: RequestInit = {}) =>
    fetch(app.url + path, { redirect: "manual", ...init, headers: { cookie, ...Object(init.headers) } });
  const pageOf = async (path: string) => (await context(path)).text();
  /** The hidden fields of the forms of a page, as they would be sent. */
  const hiddenOf = async (path: string) => hiddenIn(await pageOf(path));
  const send = (
    path: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ) =>
    context(path, {
      method: "POST",
      headers: { ...FORM, origin: app.origin, ...headers },
      body: new URLSearchParams({ session_secret: SESSION_SECRET, ...fields }).toString(),
    });
  /** What the form has that sends an action again, before anybody edits it. */
  const editFieldsOf = async (id: string) => {
    const html = await pageOf(`/actions/${id}/edit`);
    const plain = (text = "") => text.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&");
    const input = (name: string) =>
      plain(/value="([^"]*)"/.exec(new RegExp(`<input[^>]*id="${name}"[^>]*>`).exec(html)?.[0] ?? "")?.[1]);
    const area = (name: string) =>
      plain(new RegExp(`<textarea[^>]*name="${name}"[^>]*>([^<]*)</textarea>`).exec(html)?.[1]);
    const [method = ""] = /(?<=<option selected[^>]*>)[A-Z]+/.exec(html) ?? [];
    const shown = { method, url: input("url"), title: input("title"), headers: area("headers"), body: area("body") };
    return { ...hiddenIn(html), ...shown };
  };
  return {
    cookie,
    /** Lets a browser be the one that has logged in: with the cookie, and with what the login left in its storage. */
    async enter(browser: BrowserContext) {
      const [name = "", value = ""] = cookie.split("=");
      await browser.addCookies([{ name, value, url: app.url }]);
      const own = JSON.stringify(app.url);
      const keep = `localStorage.setItem("outgate_session_secret", ${JSON.stringify(SESSION_SECRET)})`;
      await browser.addInitScript(`if (self.origin === ${own}) ${keep}`);
    },
    context,
    pageOf,
    hiddenOf,
    editFieldsOf,
    /** Loads the page that a redirect leads to, with the cookies that came with it, as often as it is called. */
    follow: (redirect: Response) =>
      context(redirect.headers.get("location") ?? "", {
        headers: { cookie: [cookie, ...cookiesIn(redirect)].join("; ") },
      }),
    /** Sends fields to a page as a form of it and the script would. */
    send,
    /** The same with the token that the forms of the session have. */
    press: async (path: string, fields: Readonly<Record<string, string>> = {}) => {
      const { form_token = "" } = await hiddenOf("/settings/login");
      return send(path, { form_token, ...fields });
    },
  };
}

/** Answers the question that every form leads to where no script runs. */
export async function confirmPassword(page: Page, password = ANN_PASSWORD): Promise<void> {
  await page.getByRole("heading", { name: "Confirm with your password" }).waitFor();
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Confirm" }).click();
}

/** Fills in the form of the login that the page shows. */
export async function logIn(page: Page, email: string): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(ANN_PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(({ pathname }) => pathname !== "/login");
}

/** The cookie of the session that an answer begins; empty where it begins none. */
export function sessionIn(answer: Pick<Response, "headers">): string {
  return cookiesIn(answer).find((one) => one.includes("outgate_session=")) ?? "";
}

/** The cookies that an answer sets, as a browser sends them back. */
export function cookiesIn({ headers }: Pick<Response, "headers">): readonly string[] {
  return headers.getSetCookie().map((set) => set.split(";", 1)[0] ?? "");
}
