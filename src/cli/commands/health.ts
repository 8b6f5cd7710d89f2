import { EXIT, type Io } from "../io.ts";
import { createClient } from "../../client/client.ts";
import { InvalidSettings } from "../../config/config.ts";
import { readSettings, settingTexts } from "../../config/settings.ts";
import { listenAddress, localUrl } from "../../config/values.ts";
import { explain } from "../failures.ts";

/** Short, because supervisors ask often and ignore late answers. */
const TIMEOUT_MS = 3_000;

/** `outgate health`: asks the service of these settings, since the container image has no shell and no curl. */
export async function checkHealth({ env, out, err }: Io, { ready = false }: HealthFlags): Promise<number> {
  const url = serviceUrl(env);
  const client = createClient({ url, apiKey: null, timeoutMs: TIMEOUT_MS, tries: 1 });
  try {
    const { status, version } = ready ? await client.getReady() : await client.getHealth();
    out(`${status} ${version}\n`);
    return EXIT.ok;
  } catch (error) {
    err(`${explain(error, url).message}\n`);
    return EXIT.failed;
  }
}

/** The address at which this machine reaches the service of these settings. */
function serviceUrl(env: Io["env"]): string {
  const read = readSettings(settingTexts(env));
  if ("problems" in read) throw new InvalidSettings(read.problems);
  return localUrl(listenAddress(read.settings.HOST), read.settings.PORT);
}

export interface HealthFlags {
  readonly ready?: boolean;
}
