// A server of graphql-ws. Its arguments are a port of loopback, and a file that gets a line for
// each question that is worked on. It ends with its standard input. Each line of the input goes to all who have
// subscribed to lines, and the line "end" completes their subscriptions. It prints a line for each subscription.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { buildSchema } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer } from 'ws';

const [port, log] = process.argv.slice(2);
const say = async ({ text, after }) => {
  appendFileSync(log, text + '\n');
  await setTimeout(after);
  return text;
};
const readers = new Set();
const lines = () => {
  let wake = () => {};
  const queue = [];
  const push = (line) => { queue.push(line); wake(); };
  const next = async () => {
    while (!queue.length) await new Promise((resolve) => (wake = resolve));
    return queue[0] === 'end' ? { done: true } : { done: false, value: { lines: queue.shift() } };
  };
  readers.add(push);
  console.log('subscribed');
  return { [Symbol.asyncIterator]() { return this; }, next, return: async () => { readers.delete(push); return { done: true }; } };
};
createInterface({ input: process.stdin }).on('line', (line) => readers.forEach((push) => push(line)));
const schema = buildSchema('type Query { say(text: String!, after: Int!): String! } type Subscription { lines: String! }');
useServer(
  { schema, roots: { query: { say }, subscription: { lines } } },
  new WebSocketServer({ host: '127.0.0.1', port: Number(port) }),
);
process.stdin.on('end', () => process.exit());
