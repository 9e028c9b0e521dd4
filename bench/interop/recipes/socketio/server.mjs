// A server of Socket.IO, with connection state recovery. Its argument is a port of loopback. It ends with its standard
// input. Each line of the input is the event "line" to all, and the line "cut" ends all connections without a word. It
// prints "pong" when a client has answered a heartbeat.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Server } from 'socket.io';

const http = createServer();
const io = new Server(http, { connectionStateRecovery: {}, transports: ['websocket'], pingInterval: 500, pingTimeout: 60_000 });
io.on('connection', (s) => s.conn.on('heartbeat', () => console.log('pong')));
createInterface({ input: process.stdin })
  .on('line', (line) => (line === 'cut' ? io.sockets.sockets.forEach((s) => s.conn.transport.socket.terminate()) : io.emit('line', line)))
  .on('close', () => process.exit());
http.listen(Number(process.argv[2]), '127.0.0.1');
