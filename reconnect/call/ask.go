package call

import (
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Ask asks a question while a session is opened, such as the login, and returns the answer, whose
// data belongs to the caller. It is for OnSession and Layer.Open, in the goroutine that may use o,
// where Do returns [ErrInCallback]. What comes before the answer is passed on by
// [reconnect.Opening.Deliver]. The question is not one of the Client's: its id must differ from the ids
// of all questions in flight, as the numbers of [Client.Next] do. An error means that the session cannot be opened:
// return it, unless it is [conn.ErrBadMessage].
func (c *Client[K]) Ask(o *reconnect.Opening, id K, question conn.Message) (conn.Message, error) {
	if err := o.Write(question); err != nil {
		return conn.Message{}, err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return conn.Message{}, err
		}
		if got, ok := c.o.ID(reconnect.Message{Message: m, Session: o.Session}); ok && got == id {
			return m, nil
		}
		if err := o.Deliver(m); err != nil {
			return conn.Message{}, err
		}
	}
}
