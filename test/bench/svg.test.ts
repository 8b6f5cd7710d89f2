import { expect, test } from "bun:test";
import { barChartSvg, lineChartSvg } from "../../bench/parts/svg.ts";

const titles = { title: "A & <b>", subtitle: "each", series: ["http", "https"] };

test("bars are as long as their values, and a missing value has none", () => {
  const groups = [
    { name: "one", values: [1, 0.5] },
    { name: "two", values: [0.25, null] },
  ];
  const svg = barChartSvg({ ...titles, groups });
  const widths = [...svg.matchAll(/<rect class="[ab]" x="132" y="\d+" width="([\d.]+)"/g)].map(([, width]) =>
    Number(width),
  );
  expect(widths).toHaveLength(3);
  const [first = 0, half = 0, quarter = 0] = widths;
  expect(half / first).toBeCloseTo(0.5, 2);
  expect(quarter / first).toBeCloseTo(0.25, 2);
});

test("lines lie on logarithmic scales within the page, the largest value on top", () => {
  const points = [
    [
      { x: 10, y: 3 },
      { x: 100, y: 30 },
      { x: 1_000, y: 300 },
    ],
  ];
  const svg = lineChartSvg({ ...titles, points, xName: "rate" });
  const at = [...svg.matchAll(/cx="([\d.]+)" cy="([\d.]+)"/g)].map(([, x, y]) => ({ x: Number(x), y: Number(y) }));
  const [first, second, third] = at;
  if (first === undefined || second === undefined || third === undefined) throw new Error("There are three points.");
  expect(second.x - first.x).toBeCloseTo(third.x - second.x, 0);
  expect(first.y - second.y).toBeCloseTo(second.y - third.y, 0);
  expect(first.y).toBeGreaterThan(third.y);
  expect(third.y).toBeGreaterThan(82);
  expect(first.y).toBeLessThan(352);
});

test("titles are text, whatever they contain, and both kinds of page are thought of", () => {
  const svg = barChartSvg({ ...titles, groups: [{ name: "<i>", values: [1, 1] }] });
  expect(svg).toContain("A &amp; &lt;b>");
  expect(svg).not.toContain("<b>");
  expect(svg).not.toContain("<i>");
  expect(svg).toContain("prefers-color-scheme: dark");
});
