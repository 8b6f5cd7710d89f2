import { expect, test } from "bun:test";
import { Glob } from "bun";

const SOURCES = new URL("../../src/", import.meta.url).pathname;

const read = async (pattern: string) => {
  const files = [...new Glob(pattern).scanSync(SOURCES)].map((name) => Bun.file(SOURCES + name).text());
  return (await Promise.all(files)).join("\n");
};

test("every class that a stylesheet names is used by a page", async () => {
  const css = (await read("{pages,ui}/**/*.css")).replaceAll(/\/\*.*?\*\//gs, "");
  const sources = await read("{pages,ui,mail}/**/*.{ts,tsx}");
  const words = new Set(sources.split(/[\s"'`]+/));
  const selectors = [...css.matchAll(/[^{}]+(?=\{)/g)].join(" ");
  const classes = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/g)].map(([, name = ""]) => name));
  const isUsed = (name: string) =>
    words.has(name) || sources.includes(`${name.slice(0, name.lastIndexOf("-") + 1)}\${`);
  expect(classes.size).toBeGreaterThan(50);
  // htmx and the highlighter set those.
  const others = /^(?:htmx-request$|hljs-)/;
  expect([...classes].filter((name) => !others.test(name) && !isUsed(name))).toEqual([]);
});

/** Colours by number or function, and times: only tokens have them. */
const VALUE = /#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(|(?<![\w-])[\d.]+m?s\b/i;
/** Lengths of these come from tokens too; shares of the text or of the box may be said in place. */
const SIZED = /^(?:font-size|font|border-radius)$/;
const LENGTH = /(?<![\w-])\d*\.?\d*[1-9]\d*\.?\d*(?:px|rem|pt|mm)\b/;
/** Lines at an edge are no shadows. */
const SHADOW = /^(?:none|var\(--shadow\)|inset [-\dpx ]+ var\(--[\w-]+\))$/;

/** The declarations of a stylesheet with a value that no token names. */
function unnamedValues(css: string): readonly string[] {
  const bare = css.replaceAll(/\/\*.*?\*\//gs, "");
  return [...bare.matchAll(/(?<=[{;]\s*)([a-z-]+):\s*([^;{}]+);/g)].flatMap(([text, name = "", value = ""]) => {
    const isUnnamed =
      VALUE.test(value) ||
      (SIZED.test(name) && LENGTH.test(value)) ||
      (name === "box-shadow" && !SHADOW.test(value.trim()));
    return isUnnamed ? [text] : [];
  });
}

test("only tokens name colours, sizes of text, radii, shadows and durations", async () => {
  const names = [...new Glob("{pages,ui}/**/*.css").scanSync(SOURCES)].filter((name) => name !== "ui/tokens.css");
  const found = await Promise.all(
    names.map(async (name) => unnamedValues(await Bun.file(SOURCES + name).text()).map((text) => `${name}: ${text}`)),
  );
  expect(names.length).toBeGreaterThan(5);
  expect(found.flat()).toEqual([]);
});

test.each(["color: #123", "background: rgb(0 0 0 / 1%)", "font-size: 12px", "border-radius: 3px", "animation: a 0.2s"])(
  "a stylesheet may not say %s",
  (declaration) => {
    expect(unnamedValues(`.a { display: grid; ${declaration}; }`)).toHaveLength(1);
  },
);

const TOKENS = await read("ui/tokens.css");

/** The colours of the light theme, and of the dark one where it names others. */
const colorsOf = (css: string) =>
  new Map([...css.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = "", color = ""]) => [name, color] as const));
const [light = "", dark = ""] = TOKENS.split("@media screen and (prefers-color-scheme: dark)");

/** The relative luminance of WCAG. */
function luminance(color: string): number {
  const parts = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return parts.reduce((sum, share, at) => sum + share * (([0.2126, 0.7152, 0.0722] as const)[at] ?? 0), 0);
}

test.each([
  ["light", colorsOf(light)],
  ["dark", new Map([...colorsOf(light), ...colorsOf(dark)])],
] as const)(
  "what is read has enough contrast wherever it stands, also in a row that is pointed at: %s",
  (_, colors) => {
    const of = (name: string) => luminance(colors.get(name) ?? "");
    const contrast = (one: string, other: string) =>
      (Math.max(of(one), of(other)) + 0.05) / (Math.min(of(one), of(other)) + 0.05);
    const texts = ["text", "quiet", "faint", "accent", "wait", "busy", "good", "bad", "still"];
    const grounds = ["back", "surface", "raised", "well", "hover", "accent-back"];
    const pairs = [
      ...texts.flatMap((text) => grounds.map((ground) => [text, ground] as const)),
      ...["wait", "good", "bad"].map((text) => [text, `${text}-back`] as const),
      ["on-accent", "accent"] as const,
    ];
    expect(pairs.filter(([text, ground]) => contrast(text, ground) < 4.5)).toEqual([]);
  },
);
