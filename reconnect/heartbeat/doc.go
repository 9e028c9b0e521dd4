// Package heartbeat answers the heartbeats of a server whose protocol sends them as messages: {} in
// Centrifugo, 2 in Socket.IO, PING in NATS, {"type":"ping"} in graphql-ws. (Pings of WebSocket do not
// need this package: package conn answers them.)
//
//	d := &heartbeat.Dialer{
//		Dialer: &dialer.WebSocket{URL: "wss://chat.example/connection/websocket"},
//		Answer: func(m conn.Message) (answer conn.Message, ok bool) {
//			return conn.TextMessage("{}"), string(m.Data) == "{}"
//		},
//		Every: 25 * time.Second, // as the server has promised
//	}
//	c, err := reconnect.New(d, nil)
//
// A Dialer wraps each connection, so heartbeats are answered below OnSession and every reconnect.Layer:
//
//   - Heartbeats are answered from the first message of a session on, also while OnSession runs. The
//     goroutine that reads writes the answer, in its Read. So OnSession keeps its sole use of the
//     connection, and no answer overtakes what OnSession writes before it reads. While nobody reads, a
//     heartbeat waits for its answer, as a ping does.
//   - OnSession, the layers and the reader see no heartbeat. Options.Stall does not count heartbeats: a
//     session that brings nothing else stalls. Outbox.OnReceipt, RunOptions.Logins, Options.Pace and
//     Options.KeepAlive do not count the answers.
//   - If an answer cannot be written, the reader has a second to find the close frame of the server,
//     which says why the session has ended.
//
// With Split of dialer.WebSocket each part of a frame may be a heartbeat.
package heartbeat
