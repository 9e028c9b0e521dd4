// A server of graphql-ws. Its arguments are a port of loopback, and a file that gets a line for
// each question that is worked on. It ends with its standard input.
import { appendFileSync } from 'node:fs';
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
useServer(
  { schema: buildSchema('type Query { say(text: String!, after: Int!): String! }'), roots: { query: { say } } },
  new WebSocketServer({ host: '127.0.0.1', port: Number(port) }),
);
process.stdin.on('end', () => process.exit()).resume();
