import { describe, expect, test } from "bun:test";
import type { Action } from "../../src/core/action.ts";
import { createBus } from "../../src/core/bus.ts";
import { anAction } from "../support/factory.ts";

/** A listener that keeps what it hears. */
function ear() {
  const heard: Action[] = [];
  return { heard, listen: (action: Action) => void heard.push(action) };
}

test("a subscriber hears of every action until it stops", () => {
  const bus = createBus();
  const { heard, listen } = ear();
  const [one, other] = [anAction(), anAction()];
  const stop = bus.subscribe(listen);
  bus.publish(one);
  bus.publish(other);
  stop();
  bus.publish(one);
  expect(heard).toEqual([one, other]);
});

test("a watcher hears of its action alone until it stops", () => {
  const bus = createBus();
  const { heard, listen } = ear();
  const [mine, other] = [anAction(), anAction()];
  const stop = bus.watch(mine.id, listen);
  bus.publish(other);
  bus.publish(mine);
  stop();
  stop();
  bus.publish(mine);
  expect(heard).toEqual([mine]);
});

test("one watcher that stops leaves the others of the same action", () => {
  const bus = createBus();
  const [first, second, third] = [ear(), ear(), ear()];
  const action = anAction();
  const stopFirst = bus.watch(action.id, first.listen);
  const stopSecond = bus.watch(action.id, second.listen);
  stopFirst();
  bus.publish(action);
  stopSecond();
  // The last one has gone, and with it the list that it was in: a late second stop must not take a newer one down.
  bus.watch(action.id, third.listen);
  stopSecond();
  bus.publish(action);
  expect([first.heard, second.heard, third.heard]).toEqual([[], [action], [action]]);
});

test("a watcher may stop in the middle of the news", () => {
  const bus = createBus();
  const { heard, listen } = ear();
  const action = anAction();
  const stop = bus.watch(action.id, (seen) => {
    listen(seen);
    stop();
  });
  const other = ear();
  bus.watch(action.id, other.listen);
  bus.publish(action);
  bus.publish(action);
  expect(heard).toEqual([action]);
  expect(other.heard).toEqual([action, action]);
});

describe("a change that another process made", () => {
  const revised = (action: Action, revision: number): Action => ({ ...action, revision });

  test("is told to those who watch the action, and to nobody else", () => {
    const bus = createBus();
    const [all, mine] = [ear(), ear()];
    const action = anAction();
    bus.subscribe(all.listen);
    bus.watch(action.id, mine.listen);
    bus.relay(action);
    bus.relay(anAction());
    expect([all.heard, mine.heard]).toEqual([[], [action]]);
  });

  test("is not told when they have heard of it or of a later one, from whomever", () => {
    const bus = createBus();
    const { heard, listen } = ear();
    const action = anAction();
    const unwatch = bus.watch(action.id, listen);
    bus.relay(revised(action, 3));
    bus.relay(revised(action, 3));
    bus.relay(revised(action, 2));
    bus.publish(revised(action, 5));
    bus.relay(revised(action, 5));
    bus.saw(action.id, 7);
    bus.relay(revised(action, 7));
    bus.relay(revised(action, 8));
    expect(heard.map(({ revision }) => revision)).toEqual([3, 5, 8]);
    expect([bus.isNews(action.id, 8), bus.isNews(action.id, 9)]).toEqual([false, true]);
    unwatch();
    expect(bus.isNews(action.id, 9)).toBe(false);
    expect([...bus.watched()]).toEqual([]);
  });
});
