import { createOfferWelcome } from "../../src/accounts/welcome-link.ts";
import type { RealDoor } from "./real-house.ts";
import { OWN_ORIGIN } from "./stub-house.ts";

export const ANN = "ann@example.com";
const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** The first person of the owner's account, in a browser without script: a cookie, pages and forms. */
export async function signedIn(door: RealDoor) {
  const { store, secrets, clock } = door.engine;
  const token = await createOfferWelcome({ ...store, secrets, clock })();
  const body = new URLSearchParams({ email: ANN, password: "correct horse battery" }).toString();
  const welcome = { method: "POST", redirect: "manual", headers: { ...FORM, origin: OWN_ORIGIN }, body } as const;
  const entered = await fetch(`${door.url}/welcome/${token}`, welcome);
  const cookie = (entered.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";

  const visit = (path: string, init: RequestInit = {}) =>
    fetch(door.url + path, { redirect: "manual", ...init, headers: { cookie, ...Object(init.headers) } });
  const pageOf = async (path: string) => (await visit(path)).text();
  /** The hidden fields of the forms of a page, as they would be sent. */
  const hiddenOf = async (path: string) => {
    const inputs = (await pageOf(path)).matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g);
    return Object.fromEntries([...inputs].map(([, name = "", value]) => [name, value ?? ""]));
  };
  return {
    cookie,
    visit,
    pageOf,
    hiddenOf,
    /** Loads the page that a redirect leads to, with the cookies that came with it, as often as it is called. */
    follow: (redirect: Response) =>
      visit(redirect.headers.get("location") ?? "", {
        headers: { cookie: [cookie, ...cookiesIn(redirect)].join("; ") },
      }),
    /** Sends fields to a page as a form of it would. */
    send: (path: string, fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) =>
      visit(path, {
        method: "POST",
        headers: { ...FORM, origin: OWN_ORIGIN, ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
  };
}

/** The cookies that an answer sets, as a browser sends them back. */
export function cookiesIn({ headers }: Pick<Response, "headers">): readonly string[] {
  return headers.getSetCookie().map((set) => set.split(";", 1)[0] ?? "");
}
