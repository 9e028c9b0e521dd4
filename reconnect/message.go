package reconnect

import "github.com/redial-go/redial/conn"

// Message is a received message, and the session that it came by.
type Message struct {
	conn.Message
	Session uint64
}
