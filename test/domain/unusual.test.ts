import { expect, test } from "bun:test";
import { unusualOf } from "../../src/domain/unusual.ts";

test("a request is unusual when it deletes, and when its host was never called", () => {
  const called = new Set(["api.example.com"]);
  const of = (method: "GET" | "DELETE", hostname: string) => unusualOf({ method, hostname }, called);
  expect(of("GET", "api.example.com")).toEqual([]);
  expect(of("DELETE", "api.example.com")).toEqual(["deletes"]);
  expect(of("GET", "other.example.com")).toEqual(["new_host"]);
  expect(of("DELETE", "other.example.com")).toEqual(["deletes", "new_host"]);
});
