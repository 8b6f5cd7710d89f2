import { buildBinary } from "./build/binary.ts";
import { buildBridge } from "./build/bridge.ts";
import { buildPackage } from "./build/package.ts";

/** `npm run build`: everything, or what the arguments name. Each prints the path of what it has built. */
const BUILDS = { binary: buildBinary, bridge: buildBridge, package: buildPackage } as const;

const names = process.argv.slice(2);
const unknown = names.find((name) => !(name in BUILDS));
if (unknown === undefined) {
  for (const [name, build] of Object.entries(BUILDS)) {
    if (names.length === 0 || names.includes(name)) console.log(await build());
  }
} else {
  console.error(
    `There is no build ${JSON.stringify(unknown)}: name ${Object.keys(BUILDS).join(", ")}, or none for all.`,
  );
  process.exitCode = 2;
}
