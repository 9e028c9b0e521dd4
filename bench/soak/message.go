package soak

// message is a message in either direction.
type message struct {
	Op   string   `json:"op"`
	ID   string   `json:"id,omitempty"`
	Keys []string `json:"keys,omitempty"`
	N    uint64   `json:"n,omitempty"`
}

// The ops. A client sends subscribe and unsubscribe, which the server answers with agreed; ask, which
// it answers with answer; and post, which it answers with ack.
const (
	opHello  = "hello" // N: the newest post that the server has
	opAgreed = "agreed"
	opTick   = "tick" // N counts the ticks of a session for a key
	opAsk    = "ask"
	opAnswer = "answer"
	opPost   = "post"
	opAck    = "ack"
)
