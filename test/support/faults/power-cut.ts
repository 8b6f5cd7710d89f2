import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { newFolder, Service } from "../service.ts";
import { Target } from "../target.ts";
import { storedIn } from "./database.ts";
import { broken, type FaultReport } from "./report.ts";

const CREATORS = 16;
const IMAGE_MIB = 48;
const [CUT_MS_MIN, CUT_MS_MAX] = [100, 400];

/** Whether this machine lets us mount an image. */
export function canCut(): boolean {
  const script = 'truncate -s 8M "$0" && mkfs.ext4 -q "$0" && mkdir "$0.d" && mount -o loop "$0" "$0.d"';
  const folder = newFolder();
  try {
    return Bun.spawnSync(["unshare", "-m", "sh", "-c", script, join(folder, "i")], { stderr: "ignore" }).success;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Power cuts under load (F3): the service runs on a disk in a file. It is stopped in the middle of everything, the file is
 * copied as it is at that moment, and the copy is mounted as after a cut: what was not made durable is not in it.
 */
export async function powerCuts(cuts: number, chance: () => number): Promise<FaultReport> {
  const folder = newFolder();
  const image = join(folder, "disk.img");
  const disk = join(folder, "disk");
  mkdirSync(disk);
  run(["truncate", "-s", `${IMAGE_MIB}M`, image]);
  run(["mkfs.ext4", "-q", image]);
  await using target = new Target();
  const mount = 'mount -o loop "$0" "$1" && cd "$1" && shift && exec "$@"';
  await using service = new Service({
    folder,
    wrapper: ["unshare", "-m", "sh", "-c", mount, image, disk],
    env: { RATE_LIMIT_PER_SECOND: "0" },
  });
  await service.ready();
  const acknowledged: string[] = [];
  let isOver = false;
  const creator = async () => {
    while (!isOver) acknowledged.push(String((await service.create({ url: target.url }))["id"]));
  };
  const creators = Array.from({ length: CREATORS }, () => creator().catch(() => {}));
  while (acknowledged.length < CREATORS) await Bun.sleep(5);
  let lost = 0;
  let unsound = 0;
  let checked = 0;
  for (let cut = 0; cut < cuts; cut += 1) {
    await Bun.sleep(CUT_MS_MIN + chance() * (CUT_MS_MAX - CUT_MS_MIN));
    service.process.kill("SIGSTOP");
    // What was answered is in this list already, or still on its way to us: then nobody was told.
    const told = [...acknowledged];
    const snapshot = join(folder, `cut-${cut}.img`);
    run(["cp", "--sparse=always", image, snapshot]);
    service.process.kill("SIGCONT");
    const stored = mounted(snapshot, folder);
    lost += told.filter((id) => !stored.actions.has(id)).length;
    unsound += stored.isSound ? 0 : 1;
    checked += told.length;
    rmSync(snapshot);
  }
  isOver = true;
  await Promise.all(creators);
  await service.end("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  return {
    figures: { cuts, acknowledged: acknowledged.length, checked, lost, unsound },
    problems: broken({
      "no acknowledged row is lost": lost === 0 && checked > 0,
      "every copy is sound": unsound === 0,
    }),
  };
}

/** The database of an image, out of a mount that is gone with the command. */
function mounted(image: string, folder: string) {
  const [disk, out] = [join(folder, "after"), join(folder, "out")];
  mkdirSync(disk, { recursive: true });
  run(["unshare", "-m", "sh", "-c", 'mount -o loop "$0" "$1" && cp -r "$1/data" "$2"', image, disk, out]);
  const stored = storedIn(out);
  rmSync(out, { recursive: true });
  return stored;
}

function run(command: readonly string[]): void {
  const { success, stderr } = Bun.spawnSync([...command], { stderr: "pipe" });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}
