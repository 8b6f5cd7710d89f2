import { expect, test } from "bun:test";
import { createCounter, createHistogram, gaugeText } from "../../src/observability/gauges.ts";

test("a counter counts by its labels, and shows known series from the start", () => {
  const counter = createCounter({ name: "x_total", help: "Some x.", labels: ["kind", "end"] }, [["a", "ok"]]);
  counter.add(["b", "ok"]);
  counter.add(["b", "ok"], 2);
  expect(counter.text()).toBe(
    '# HELP x_total Some x.\n# TYPE x_total counter\nx_total{kind="a",end="ok"} 0\nx_total{kind="b",end="ok"} 3\n',
  );
});

test("a counter without labels has none in its line", () => {
  const counter = createCounter({ name: "x_total", help: "Some x.", labels: [] }, [[]]);
  counter.add([]);
  expect(counter.text()).toEndWith("\nx_total 1\n");
});

test("a histogram counts up to each bound, the bound included, and keeps sum and count", () => {
  const histogram = createHistogram({ name: "x_seconds", help: "Some x.", labels: ["kind"] }, [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(["a"], value);
  expect(histogram.text()).toBe(
    [
      "# HELP x_seconds Some x.",
      "# TYPE x_seconds histogram",
      'x_seconds_bucket{kind="a",le="0.1"} 2',
      'x_seconds_bucket{kind="a",le="1"} 3',
      'x_seconds_bucket{kind="a",le="+Inf"} 4',
      'x_seconds_sum{kind="a"} 7.65',
      'x_seconds_count{kind="a"} 4',
      "",
    ].join("\n"),
  );
});

test("values of labels are escaped", () => {
  const text = gaugeText({ name: "x", help: "Some x.", labels: ["a"] }, [{ labels: ['q"\\\n'], value: 1 }]);
  expect(text).toEndWith('\nx{a="q\\"\\\\\\n"} 1\n');
});
