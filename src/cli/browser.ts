import { spawn } from "node:child_process";
import type { Io } from "./command.ts";

/** The command that opens a URL; null: there is no screen to open it on. */
function browserCommand(
  platform: NodeJS.Platform,
  { DISPLAY = "", WAYLAND_DISPLAY = "", BROWSER = "" }: Io["env"],
): readonly string[] | null {
  if (platform === "darwin") return ["open"];
  // Not `cmd /c start`, which reads `&` in a URL as the end of the command.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return DISPLAY === "" && WAYLAND_DISPLAY === "" && BROWSER === "" ? null : ["xdg-open"];
}

/** Opens a URL, without a shell. Resolves with whether the program for it could be started. */
export async function openInBrowser(url: string, env: Io["env"]): Promise<boolean> {
  const [program, ...args] = browserCommand(process.platform, env) ?? [];
  if (program === undefined) return false;
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
