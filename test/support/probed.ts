import { join } from "node:path";
import { Service, type ServiceOptions } from "./service.ts";

/** A service in a process of its own whose event loop is watched. */
export class ProbedService extends Service {
  constructor({ env = {}, ...options }: ServiceOptions = {}) {
    const watched = { RATE_LIMIT_PER_SECOND: "0", BUN_OPTIONS: `--preload ${join(import.meta.dir, "gap-probe.ts")}` };
    super({ ...options, env: { ...watched, ...env } });
  }

  /** Signs Ann up: the owner key of her account, and the cookie of her session. */
  async signedUp(): Promise<{ readonly key: string; readonly cookie: string }> {
    const body = JSON.stringify({ email: "ann@example.com", password: "correct horse battery staple" });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${await this.ready()}/auth/signup`, { method: "POST", headers, body });
    const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1);
    return { key: ((await answer.json()) as { api_key: string }).api_key, cookie };
  }

  /** The longest time in milliseconds that its event loop stood still while the work was done. */
  async gapOf(work: () => Promise<unknown>): Promise<number> {
    await this.#take();
    await work();
    return this.#take();
  }

  async #take(): Promise<number> {
    const { url } = await this.logged("test.probe");
    return Number(await (await fetch(String(url))).text());
  }
}
