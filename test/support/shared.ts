import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { rmSync } from "node:fs";
import { newFolder } from "./service.ts";

/** Something that all tests of a file share; it is disposed of behind the last one. */
export async function shared<T extends AsyncDisposable>(opening: T | Promise<T>): Promise<T> {
  const thing = await opening;
  afterAll(() => thing[Symbol.asyncDispose]());
  return thing;
}

/** Opens something before the first of the tests around it, which share it, and disposes of it behind the last one. */
export function once(open: () => AsyncDisposable | Promise<AsyncDisposable>): void {
  let thing: AsyncDisposable | undefined;
  beforeAll(async () => {
    thing = await open();
  });
  afterAll(() => thing?.[Symbol.asyncDispose]());
}

/** Opens something of their own for the tests of a file, and disposes of it behind each. */
export function fresh(open: () => AsyncDisposable | Promise<AsyncDisposable>): void {
  let thing: AsyncDisposable | undefined;
  beforeEach(async () => {
    thing = await open();
  });
  afterEach(() => thing?.[Symbol.asyncDispose]());
}

/** Makes folders for the tests of a file, which are gone behind the last one. */
export function newFolders(): () => string {
  const folders: string[] = [];
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
  return () => {
    const folder = newFolder();
    folders.push(folder);
    return folder;
  };
}

/** A folder that all tests of a file share. */
export function sharedFolder(): string {
  return newFolders()();
}
