import { existsSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const IN_MEMORY = "/dev/shm";
/** More than the databases of all tests that run at once. Containers often have 64 MB, which are soon full. */
const FREE_BYTES_MIN = 1_000_000_000;

/** Where tests make databases: in memory where there is room, since every commit waits for the disk elsewhere. */
export const DATABASES = hasRoom() ? IN_MEMORY : tmpdir();

function hasRoom(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return bavail * bsize >= FREE_BYTES_MIN;
}
