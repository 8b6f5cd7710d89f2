import { expect, test } from "bun:test";

const ROOT = new URL("..", import.meta.url).pathname;

interface Locked {
  readonly name?: string;
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface PackageLock {
  readonly packages: Readonly<Record<string, Locked>>;
}

/** Its entries are lists whose first member is `name@version`. */
interface BunLock {
  readonly packages: Readonly<Record<string, readonly [string, ...unknown[]]>>;
}

async function packageLock(): Promise<PackageLock["packages"]> {
  const { packages }: PackageLock = await Bun.file(`${ROOT}package-lock.json`).json();
  return packages;
}

async function lockedByNpm(): Promise<readonly string[]> {
  const packages = await packageLock();
  const locked = Object.entries(packages).filter(([path]) => path !== "");
  return sorted(
    locked.map(([path, { name, version }]) => `${name ?? path.replace(/^.*node_modules\//, "")}@${version}`),
  );
}

async function lockedByBun(): Promise<readonly string[]> {
  // Bun's lockfile has trailing commas: JSON with comments, as Bun itself reads it.
  const { packages }: BunLock = (await import(`${ROOT}bun.lock`, { with: { type: "jsonc" } })).default;
  return sorted(Object.values(packages).map(([nameAndVersion]) => nameAndVersion));
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].toSorted();
}

test("package-lock.json and bun.lock hold the same packages in the same versions", async () => {
  const npm = await lockedByNpm();
  expect(npm.length).toBeGreaterThan(10);
  expect(await lockedByBun()).toEqual([...npm]);
});

test("package-lock.json is whole: npm ci refuses one that lacks the optional packages of other platforms", async () => {
  const packages = await packageLock();
  const wanted = Object.values(packages).flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies));
  expect(wanted.length).toBeGreaterThan(0);
  expect(wanted.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([]);
});
