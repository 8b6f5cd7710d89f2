import { join } from "node:path";
import { Service, type ServiceOptions } from "./service.ts";

/** A service in a process of its own whose event loop is watched. */
export class ProbedService extends Service {
  constructor({ env = {}, ...options }: ServiceOptions = {}) {
    super({ ...options, env: { ...env, BUN_OPTIONS: `--preload ${join(import.meta.dir, "gap-probe.ts")}` } });
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
