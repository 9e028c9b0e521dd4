// Package heartbeat answers the heartbeats of a server whose protocol sends them as messages, such as {} in
// Centrifugo or PING in NATS. (WebSocket pings are answered by package conn.)
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
// A [Dialer] wraps each connection, so heartbeats are answered below OnSession and every reconnect.Layer:
//
//   - Heartbeats are answered from the first message of a session on, also while OnSession runs. The goroutine
//     that reads writes the response, in its Read. So OnSession keeps its sole use of the connection, and no
//     response overtakes what it writes before it reads. While no goroutine reads, a heartbeat waits, as a ping
//     does.
//   - OnSession, the layers and the reader see no heartbeat. Options.Stall does not count heartbeats: a session
//     with nothing else stalls. Outbox.OnReceipt, RunOptions.Logins, Options.Pace and Options.KeepAlive do not
//     count the responses.
//   - If a response cannot be written, the reader has a second to find the server's close frame.
//
// With Split of dialer.WebSocket each part of a frame may be a heartbeat.
package heartbeat
